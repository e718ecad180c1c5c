"""What would be lost without a word is refused, or said."""

import numpy as np
import pytest

import weir


def test_what_compute_returns_is_refused_by_name():
    class Returns:
        outputs = ["out"]

        def compute(self, ctx):
            return np.zeros(3)

    graph = weir.Graph()
    graph.outlet(graph.add(Returns())["out"], 1)
    with pytest.raises(weir.Error, match="compute returned ndarray, which nobody gets: emit it") as caught:
        graph.run()
    assert caught.value.entity == "returns" and isinstance(caught.value.__cause__, TypeError)


def test_a_loop_over_an_outlet_before_the_first_start_is_refused():
    graph = weir.Graph()
    outlet = graph.outlet(graph.add("ping", conditions=[{"type": "count", "count": 3}])["out"], 4)
    with pytest.raises(weir.Error, match="outlet of ping.out: no run is on: start the graph, then take"):
        list(outlet)
    with graph.start():
        assert len(list(outlet)) == 3


def test_a_wait_that_ends_before_the_run_says_what_it_waits_for():
    graph = weir.Graph()
    outlet = graph.outlet(graph.add("ping", conditions=[{"type": "count", "count": 3}])["out"], 1)
    with graph.start():
        with pytest.raises(weir.Timeout, match="the run goes on: .*outlet"):
            graph.wait(0.2)
        assert len(list(outlet)) == 3
