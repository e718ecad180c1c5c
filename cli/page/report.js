"use strict";
/*
 * Draws the report. The data are JSON texts in the page: the run's statistics as weir wrote them, the findings, the
 * shares of the run that each entity was busy, and the slowest frames of a trace or null. What limits the run, and
 * how busy what was, is judged by the command alone. Every text of the data enters by textContent.
 */
const dataOf = name => JSON.parse(document.getElementById(`data-${name}`).textContent);
const run = dataOf("run"), found = dataOf("findings"), loads = dataOf("loads"), frames = dataOf("frames");
const findings = found.findings;

/* --- elements --- */

function fill(element, attributes, children) {
	for (const [key, value] of Object.entries(attributes || {}))
		if (key.startsWith("on"))
			element.addEventListener(key.slice(2), value);
		else if (value !== null && value !== undefined && value !== false)
			element.setAttribute(key, value);
	element.append(...children.flat().filter(child => child !== null && child !== undefined));
	return element;
}
const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/* --- numbers --- */

const MISSING = "\u2013";
const number = (value, digits = 0) => Number(value || 0).toLocaleString("en-US", {maximumFractionDigits: digits});
const percent = share => `${share > 0 && share < 0.005 ? "<1" : Math.round(100 * share)} %`;

function time(ns) {
	if (ns === null || ns === undefined || !isFinite(ns))
		return MISSING;
	for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"]])
		if (Math.abs(ns) >= 0.9995 * size)
			return `${Number((ns / size).toPrecision(3)).toLocaleString("en-US", {maximumFractionDigits: 2})} ${unit}`;
	return `${Math.round(ns)} ns`;
}

/* Histograms: absent ones count 0. */
const list = value => Array.isArray(value) ? value : [];
const counted = histogram => histogram && histogram.count > 0;
const mean = histogram => counted(histogram) ? histogram.sum / histogram.count : 0;
const quantile = (histogram, name) => counted(histogram) ? time(histogram[name]) : MISSING;

/* --- the run --- */

const duration = run.duration || 1;
const entities = list(run.entities).map((entity, index) => ({...entity, index, senders: [], receivers: []}));
const byName = new Map(entities.map(entity => [entity.name, entity]));
const queues = list(run.queues).map(queue => ({...queue, from_entity: byName.get(queue.sender), to_entity: byName.get(queue.receiver)}));
const links = queues.filter(queue => queue.from_entity && queue.to_entity);
const paths = list(run.paths).filter(path => counted(path.latency));
for (const queue of links) {
	queue.from_entity.receivers.push(queue.to_entity);
	queue.to_entity.senders.push(queue.from_entity);
}
for (const entity of entities) {
	const load = loads[entity.index];
	entity.shown = entity.instances > 1 ? `${entity.name} \u00d7${entity.instances}` : entity.name;
	Object.assign(entity, load, {timed: load.device !== null, device: load.device || 0});
	entity.load = Math.max(entity.host, entity.device);
	entity.found = findings.findIndex(finding => finding.entity === entity.name);
}
/* The path of the longest latency; of equal ones that through most entities. */
const isSlower = (path, other) => Math.abs(mean(path.latency) - mean(other.latency)) > 0.01 * mean(other.latency) ? mean(path.latency) > mean(other.latency) : path.entities.length > other.entities.length;
const critical = paths.reduce((worst, path) => !worst || isSlower(path, worst) ? path : worst, null);
const criticalNames = new Set(critical ? critical.entities : []);
const criticalLinks = new Set();
if (critical)
	critical.entities.slice(1).forEach((name, i) => criticalLinks.add(`${critical.entities[i]}\n${name}`));
const isCritical = link => criticalLinks.has(`${link.sender}\n${link.receiver}`);

const WAITS = [
	["worker", "READY, for a worker"], ["messages", "for messages"], ["device", "for device work"], ["room", "for room behind an output"],
	["bound", "max_in_flight"], ["memory", "for memory of a pool"], ["time", "for its time"], ["descriptor", "for a descriptor"],
	["told", "for what the program tells"], ["own", "for a condition of the program's"], ["other", "other"],
];
const WAIT_CAUSES = new Set(WAITS.map(([cause]) => cause));
const causeOf = wait => WAIT_CAUSES.has(wait.cause) ? wait.cause : "other";

/* --- search: shows what belongs to entities whose name has the text --- */

const searched = []; /* functions of the text */
function matches(text, name) {
	return !text || name.toLowerCase().includes(text);
}

/* --- sections --- */

const main = document.getElementById("main");
const contents = html("div");
const SHORT = {graph: "Graph", paths: "Paths", frames: "Slowest frames", waits: "Waits", times: "Times", entities: "Entities", queues: "Queues", pools: "Pools, workers, signals", notes: "Notes"};
function section(id, title, hint, ...children) {
	contents.append(html("a", {href: `#${id}`}, SHORT[id]));
	const made = html("section", {id, "aria-label": title}, html("h2", {}, title), hint ? html("p", {class: "hint"}, hint) : null, ...children);
	main.append(made);
	return made;
}
const legend = items => html("ul", {class: "legend"}, items.map(([color, text, kind]) => html("li", {}, html("i", {style: `background:${color}`, class: kind || null}), text)));

function drawTop() {
	const seconds = duration / 1e9;
	const workers = list(run.workers), busy = workers.reduce((sum, worker) => sum + (worker.busy || 0), 0) / duration;
	const dropped = queues.reduce((sum, queue) => sum + (queue.dropped || 0), 0);
	const ticks = entities.reduce((sum, entity) => sum + entity.ticks, 0);
	const figure = (name, value, note) => html("div", {}, html("dt", {}, name), html("dd", {}, value, html("small", {}, note || "\u00a0")));
	const top = document.getElementById("top");
	document.title = `weir report: ${run.graph || "run"}`;
	top.append(
		html("h1", {}, run.graph || "a run"),
		html("p", {class: "about"}, [run.ending, `after ${time(duration)}`, `on ${run.where || "?"}`, `${entities.length} ${entities.length === 1 ? "entity" : "entities"}`,
			run.signal ? `signal ${run.signal}` : null, run.gpu_time ? `gpu_time ${run.gpu_time}` : null].filter(Boolean).join(" \u00b7 ")),
		html("ol", {class: "findings", "aria-label": "findings"}, findings.length ? findings.map(drawFinding) : html("li", {class: found.balanced ? "none balanced" : "none"},
			html("span", {class: "what"}, found.title), html("p", {}, found.text))),
		html("dl", {class: "figures"},
			run.main ? figure("frames/s", number(run.frames / seconds, 1), `${number(run.frames)} at ${run.main}`) : figure("ticks/s", number(ticks / seconds, 1)),
			critical ? figure("latency p50", quantile(critical.latency, "p50"), "of the slowest path") : null,
			critical ? figure("latency p99", quantile(critical.latency, "p99"), `max ${time(critical.latency.max)}`) : null,
			figure("workers busy", `${number(busy, 1)} of ${workers.length || run.workers_count || "?"}`, percent(busy / (workers.length || 1))),
			figure("dropped", number(dropped), dropped ? "messages" : "no message"),
			figure("ticks", number(ticks), "of all entities")));
}

function drawFinding(finding, index) {
	return html("li", {}, html("span", {class: "what"}, `${index + 1}. ${finding.title}${finding.entity ? `: ${finding.entity}` : ""}`),
		html("p", {}, finding.text), finding.percent === null ? null : html("span", {class: "share number"}, `${finding.percent} % of ${finding.cause === "drops" ? "its messages" : "the run"}`));
}

/* --- the graph: layers from left to right, or downwards on a narrow page --- */

const NODE = {width: 158, height: 50, apart: 16, between: 74};
const COLLAPSE_FROM = 120;

/* Layers by the longest way from a source. A connection that closes a circle does not count. */
function findLayers() {
	const state = new Map(), order = [];
	for (const start of entities) {
		const stack = [[start, 0]];
		if (!state.has(start))
			state.set(start, 1);
		else
			continue;
		while (stack.length) {
			const top = stack[stack.length - 1], next = top[0].receivers[top[1]++];
			if (!next) {
				state.set(top[0], 2);
				order.push(stack.pop()[0]);
			} else if (!state.has(next)) {
				state.set(next, 1);
				stack.push([next, 0]);
			}
		}
	}
	const place = new Map(order.reverse().map((entity, i) => [entity, i]));
	order.forEach(entity => entity.layer = 0);
	for (const entity of order)
		for (const next of entity.receivers)
			if (place.get(next) > place.get(entity))
				next.layer = Math.max(next.layer, entity.layer + 1);
}

/* What is drawn: an entity each, or, collapsed, one node for all entities of a layer that are not of interest. */
function makeNodes(collapsed) {
	const nodes = [], of = new Map(), groups = new Map();
	for (const entity of entities) {
		const interesting = entity.found >= 0 || criticalNames.has(entity.name) || entity.load >= 0.7;
		let node;
		if (collapsed && !interesting) {
			node = groups.get(entity.layer);
			if (!node)
				groups.set(entity.layer, node = {entities: [], layer: entity.layer});
		} else {
			node = {entities: [], layer: entity.layer};
		}
		if (!node.entities.push(entity) || node.entities.length === 1)
			nodes.push(node);
		of.set(entity, node);
	}
	const edges = new Map();
	for (const link of links) {
		const from = of.get(link.from_entity), to = of.get(link.to_entity), key = `${nodes.indexOf(from)} ${nodes.indexOf(to)}`;
		if (from === to)
			continue;
		if (!edges.has(key))
			edges.set(key, {from, to, links: []});
		edges.get(key).links.push(link);
	}
	return {nodes, edges: [...edges.values()]};
}

/* Long connections get a place in each layer between, so that they do not cross boxes. */
function addBends(graph) {
	const points = graph.nodes.map(node => Object.assign(node, {before: [], after: [], size: 1}));
	const join = (a, b) => (a.after.push(b), b.before.push(a));
	for (const edge of graph.edges) {
		const step = edge.to.layer > edge.from.layer ? 1 : -1, inner = Math.abs(edge.to.layer - edge.from.layer) - 1;
		edge.bends = [];
		let last = edge.from;
		for (let i = 1; step > 0 && inner < 60 && points.length < 6000 && i <= inner; i++) {
			const bend = {layer: edge.from.layer + i, before: [], after: [], size: 0.3};
			points.push(bend);
			edge.bends.push(bend);
			join(last, bend);
			last = bend;
		}
		if (step > 0)
			join(last, edge.to);
	}
	return points;
}

function orderLayers(points) {
	const layers = [];
	for (const point of points)
		(layers[point.layer] = layers[point.layer] || []).push(point);
	const rank = layer => layer.forEach((point, i) => point.rank = i);
	const center = (near, point) => near.length ? near.reduce((sum, other) => sum + other.rank, 0) / near.length : point.rank;
	layers.forEach(rank);
	for (let sweep = 0; sweep < 6; sweep++) {
		const down = sweep % 2 === 0;
		for (const layer of down ? layers : [...layers].reverse()) {
			for (const point of layer)
				point.wish = center(down ? point.before : point.after, point);
			layer.sort((a, b) => a.wish - b.wish || a.rank - b.rank);
			rank(layer);
		}
	}
	return layers;
}

/* Places across the layers: near the middle of the neighbours, in order and without overlap. */
function spread(layers, size, apart) {
	for (const layer of layers) {
		let at = 0;
		for (const point of layer) {
			point.at = at + point.size * size / 2;
			at += point.size * size + apart;
		}
		layer.forEach(point => point.at -= at / 2);
	}
	for (let sweep = 0; sweep < 8; sweep++)
		for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
			for (const point of layer) {
				const near = sweep % 2 ? point.after : point.before;
				point.wish = near.length ? near.reduce((sum, other) => sum + other.at, 0) / near.length : point.at;
			}
			const gap = i => (layer[i].size + layer[i - 1].size) * size / 2 + apart;
			const forward = layer.map(point => point.wish), backward = layer.map(point => point.wish);
			for (let i = 1; i < layer.length; i++)
				forward[i] = Math.max(forward[i], forward[i - 1] + gap(i));
			for (let i = layer.length - 1; i > 0; i--)
				backward[i - 1] = Math.min(backward[i - 1], backward[i] - gap(i));
			layer.forEach((point, i) => point.at = (forward[i] + backward[i]) / 2); /* both keep the gaps, so their middle does */
		}
}

function drawNode(node, narrow, choose) {
	const one = node.entities.length === 1 ? node.entities[0] : null;
	const load = Math.max(...node.entities.map(entity => entity.load));
	const name = one ? one.shown : `${node.entities.length} others`;
	const device = one && one.timed;
	const text = one ? (device ? `host ${percent(one.host)} \u00b7 dev ${percent(one.device)}` : `host ${percent(one.host)}`) : `busiest ${percent(load)}`;
	const shown = name.length > 19 ? `${name.slice(0, 18)}\u2026` : name;
	const tint = Math.round(Math.min(1, load) * 46);
	const bar = (share, y, color) => svg("rect", {x: 8, y, width: Math.max(0, Math.min(1, share)) * (NODE.width - 16), height: 3, rx: 1.5, style: `fill:var(${color})`});
	const made = svg("g", {
		class: ["node", one && one.found >= 0 ? "found" : "", node.entities.some(entity => criticalNames.has(entity.name)) && one ? "critical" : ""].join(" "),
		transform: `translate(${node.x},${node.y})`, tabindex: 0, role: "button", "data-name": name,
		"aria-label": `${name}: ${text}${one && one.found >= 0 ? `; finding ${one.found + 1}` : ""}`,
		onclick: () => choose(node, made),
		onkeydown: event => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose(node, made)),
	},
		svg("title", {}, `${name}${one ? ` (${one.operator || "?"}): ${number(one.ticks)} ticks, ${text}` : `: ${node.entities.slice(0, 12).map(entity => entity.name).join(", ")}${node.entities.length > 12 ? ", ..." : ""}`}`),
		svg("rect", {class: one ? "box" : "box group", width: NODE.width, height: NODE.height, rx: 7, style: `fill:color-mix(in srgb, var(--load) ${tint}%, var(--surface))`}),
		svg("text", {x: 9, y: 18}, shown), svg("text", {x: 9, y: 34, class: "small"}, text),
		one ? bar(one.host, device ? 39 : 42, "--host") : bar(load, 42, "--host"), device ? bar(one.device, 44, "--device") : null);
	if (one && one.found >= 0)
		made.append(svg("circle", {cx: NODE.width - 2, cy: 2, r: 10, style: "fill:var(--bad)"}), svg("text", {x: NODE.width - 2, y: 6, "text-anchor": "middle", class: "badge"}, String(one.found + 1)));
	node.element = made;
	return made;
}

function drawEdge(edge, narrow, labelled) {
	const half = {x: NODE.width / 2, y: NODE.height / 2};
	const out = narrow ? {x: edge.from.x + half.x, y: edge.from.y + NODE.height} : {x: edge.from.x + NODE.width, y: edge.from.y + half.y};
	const into = narrow ? {x: edge.to.x + half.x, y: edge.to.y} : {x: edge.to.x, y: edge.to.y + half.y};
	const points = [out, ...edge.bends.map(bend => ({x: bend.x + (narrow ? 0 : half.x), y: bend.y + (narrow ? half.y : 0)})), into];
	let d = `M${out.x},${out.y}`;
	for (let i = 1; i < points.length; i++) {
		const a = points[i - 1], b = points[i], mx = (a.x + b.x) / 2, my = (a.y + b.y) / 2;
		d += narrow ? ` C${a.x},${my} ${b.x},${my} ${b.x},${b.y}` : ` C${mx},${a.y} ${mx},${b.y} ${b.x},${b.y}`;
	}
	const worst = edge.links.reduce((most, link) => !most || fullness(link) > fullness(most) ? link : most, null);
	const depth = worst.depth || {}, share = fullness(worst);
	const made = svg("g", {class: ["link", edge.links.some(isCritical) ? "critical" : "", share >= 0.5 ? "full" : ""].join(" ")},
		svg("title", {}, `${worst.from} \u2192 ${worst.to}: ${number(depth.mean, 1)} of ${worst.capacity} on average, full ${percent(share)} of the run${edge.links.length > 1 ? ` (the fullest of ${edge.links.length})` : ""}`),
		svg("path", {d}));
	if (labelled) {
		const middle = points.length >> 1, a = points[middle - 1], b = points[middle], x = (a.x + b.x) / 2, y = (a.y + b.y) / 2, text = `${number(depth.mean, 1)}/${worst.capacity}`, width = 12 + 6.4 * text.length;
		made.append(svg("rect", {x: x - width / 2, y: y - 9, width, height: 18, rx: 5}),
			svg("rect", {class: "fill", x: x - width / 2 + 3, y: y + 5, height: 2.5, width: (width - 6) * Math.min(1, (depth.mean || 0) / (worst.capacity || 1))}),
			svg("text", {x, y: y + 3, "text-anchor": "middle"}, text));
	}
	edge.element = made;
	return made;
}
const fullness = link => link.depth ? (link.depth.full_time || 0) / duration : 0;

function drawGraph() {
	const holder = html("div", {class: "graph", tabindex: 0, role: "group", "aria-label": "the graph"}), chosen = html("div", {"aria-live": "polite"});
	let collapsed = entities.length > COLLAPSE_FROM, zoom = null, drawn = null;
	findLayers();
	const choose = (node, element) => {
		holder.querySelectorAll(".chosen").forEach(other => other.classList.remove("chosen"));
		element.classList.add("chosen");
		chosen.replaceChildren(html("div", {class: "chosen-entity"}, node.entities.length === 1 ? entityCard(node.entities[0]) :
			html("p", {}, `${node.entities.length} entities: `, node.entities.slice(0, 200).map(entity => entity.name).join(", "), node.entities.length > 200 ? ", ..." : "")));
	};
	function draw() {
		const room = holder.clientWidth || 900, narrow = room < 620;
		const graph = makeNodes(collapsed), layers = orderLayers(addBends(graph));
		const along = narrow ? NODE.height + 40 : NODE.width + NODE.between, across = narrow ? NODE.width : NODE.height;
		spread(layers, across, NODE.apart);
		let least = Infinity, most = -Infinity;
		layers.flat().forEach(point => (least = Math.min(least, point.at - point.size * across / 2), most = Math.max(most, point.at + point.size * across / 2)));
		for (const point of layers.flat()) {
			const place = point.at - least - (point.entities ? across / 2 : 0) + 16;
			Object.assign(point, narrow ? {x: place, y: 16 + point.layer * along} : {x: 16 + point.layer * along, y: place});
		}
		const width = narrow ? most - least + 32 : 32 + layers.length * along - NODE.between, height = narrow ? 32 + layers.length * along - 40 : most - least + 32;
		const fit = Math.max(0.6, Math.min(1.35, (room - 4) / width)), scale = zoom || fit;
		const labelled = graph.edges.length <= 160;
		holder.replaceChildren(svg("svg", {viewBox: `0 0 ${width} ${height}`, width: width * scale, height: height * scale, role: "group", "aria-label": "entities and connections"},
			graph.edges.map(edge => drawEdge(edge, narrow, labelled)), graph.nodes.map(node => drawNode(node, narrow, choose))));
		drawn = {graph, scale, room};
	}
	const button = (text, press, label) => html("button", {type: "button", onclick: press, "aria-label": label || text}, text);
	const toggle = html("button", {type: "button", "aria-pressed": String(collapsed), onclick: () => {
		collapsed = !collapsed;
		toggle.setAttribute("aria-pressed", String(collapsed));
		draw();
	}}, "collapse what is not busy");
	section("graph", "Graph", "The fuller a box is coloured, the busier the entity: time in compute (host) or on the device (dev), as a share of the run. On a connection: messages in its queue on average, of its capacity.",
		html("div", {class: "bar"}, button("\u2212", () => (zoom = drawn.scale / 1.3, draw()), "smaller"), button("+", () => (zoom = drawn.scale * 1.3, draw()), "larger"),
			button("fit", () => (zoom = null, draw())), entities.length > 8 ? toggle : null),
		holder, legend([["var(--load)", "load"], ["var(--path)", "the path of the longest latency"], ["var(--bad)", "a finding, by number; dashed: a queue that is full half of the time or more"]]), chosen);
	draw();
	let waiting = null;
	addEventListener("resize", () => {
		clearTimeout(waiting);
		waiting = setTimeout(() => holder.clientWidth !== drawn.room && draw(), 120);
	});
	searched.push(text => {
		if (text && collapsed) {
			collapsed = false;
			toggle.setAttribute("aria-pressed", "false");
			draw();
		}
		let first = null;
		for (const node of drawn.graph.nodes) {
			const hit = node.entities.some(entity => matches(text, entity.name));
			node.element.classList.toggle("dim", !hit);
			first = first || (text && hit ? node : null);
		}
		drawn.graph.edges.forEach(edge => edge.element.classList.toggle("dim", Boolean(text)));
		if (first)
			holder.scrollTo(first.x * drawn.scale - holder.clientWidth / 2, first.y * drawn.scale - holder.clientHeight / 2);
	});
}

/* --- histograms --- */

const WIDE = innerWidth < 700 ? 300 : 560; /* of a chart, so that its text is of one size */

/* Buckets over a logarithmic axis of time, with p50 and p99. */
function drawHistogram(histogram, color, label, width = 300) {
	const height = 124, left = 6, right = 10, base = height - 20, top = 24;
	const buckets = list(histogram.buckets).filter(bucket => bucket[2] > 0);
	if (!buckets.length)
		return html("p", {class: "hint"}, "no distribution in the file");
	const log = value => Math.log10(Math.max(1, value));
	let low = log(buckets[0][0]), high = log(buckets[buckets.length - 1][1]);
	if (high - low < 0.3) {
		const middle = (high + low) / 2;
		low = middle - 0.15;
		high = middle + 0.15;
	}
	const x = value => left + (log(value) - low) / (high - low) * (width - left - right);
	const most = Math.max(...buckets.map(bucket => bucket[2]));
	const made = svg("svg", {class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}: p50 ${time(histogram.p50)}, p99 ${time(histogram.p99)}, max ${time(histogram.max)}, ${histogram.count} values`});
	for (const [from, to, count] of buckets) {
		const high = Math.max(2, count / most * (base - top)); /* one value of ten thousand is seen, too */
		made.append(svg("rect", {x: x(from), y: base - high, width: Math.max(1.5, x(to) - x(from) - 0.5), height: high, style: `fill:${color}`},
			svg("title", {}, `${time(from)} to ${time(to)}: ${number(count)}`)));
	}
	made.append(svg("line", {class: "axis", x1: left, x2: width - right, y1: base, y2: base}));
	const ticks = [];
	for (let power = Math.floor(low); power <= high; power++)
		for (const digit of high - low > 1.6 ? [1] : high - low > 0.75 ? [1, 2, 5] : [1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9])
			if (log(digit * 10 ** power) >= low && log(digit * 10 ** power) <= high)
				ticks.push(digit * 10 ** power);
	let taken = -Infinity;
	for (const tick of ticks)
		if (x(tick) > taken + 52 && x(tick) < width - 24) {
			taken = x(tick);
			made.append(svg("line", {class: "axis", x1: x(tick), x2: x(tick), y1: base, y2: base + 4}), svg("text", {x: x(tick), y: height - 5, "text-anchor": x(tick) < 24 ? "start" : "middle"}, time(tick)));
		}
	const marks = [["p50", histogram.p50], ["p99", histogram.p99]], room = name => 8 + 6.2 * `${name} 9.99 ms`.length;
	if (x(histogram.max) > x(histogram.p99) + 2 * room("max")) /* a long tail */
		made.append(svg("text", {class: "mark max", x: x(histogram.max), y: 22, "text-anchor": "end"}, `max ${time(histogram.max)}`));
	marks.forEach(([name, value], i) => {
		const end = i ? x(value) > width - room(name) : x(value) > room(name); /* p50 to the left, p99 to the right */
		made.append(svg("line", {class: `mark ${name}`, x1: x(value), x2: x(value), y1: top - 6, y2: base}),
			svg("text", {class: "mark", x: x(value) + (end ? -4 : 4), y: i ? 10 : 22, "text-anchor": end ? "end" : "start"}, `${name} ${time(value)}`));
	});
	return made;
}

function drawPaths() {
	const holder = html("div", {class: "grid pair"}), sorted = [...paths].sort((a, b) => mean(b.latency) - mean(a.latency));
	const more = html("button", {type: "button"}, "");
	let shown = 4, text = "";
	function draw() {
		const found = sorted.filter(path => path.entities.some(name => matches(text, name)));
		holder.replaceChildren(...found.slice(0, shown).map(path => html("div", {class: "card"},
			html("h3", {}, path.entities.length > 14 ? [...path.entities.slice(0, 6), `(${path.entities.length - 12} others)`, ...path.entities.slice(-6)].join(" \u2192 ") : path.entities.join(" \u2192 ")),
			html("p", {class: "hint number"}, `${number(path.latency.count)} of ${number(path.count)} measured \u00b7 mean ${time(mean(path.latency))} \u00b7 p50 ${time(path.latency.p50)} \u00b7 p99 ${time(path.latency.p99)} \u00b7 max ${time(path.latency.max)}`),
			drawHistogram(path.latency, "var(--path)", "latency", WIDE))));
		more.hidden = found.length <= shown;
		more.textContent = `show ${Math.min(20, found.length - shown)} more of ${found.length}`;
	}
	more.addEventListener("click", () => (shown += 20, draw()));
	section("paths", "Latency per path", paths.length ? "From the begin of the source's tick to the end of the sink's, its device work included. The slowest first." :
		"No path of the graph was measured from a source to a sink.", holder, html("div", {class: "bar"}, more));
	draw();
	searched.push(now => (text = now, draw()));
}

/* --- tables --- */

/* columns: [title, value for sorting, shown value, class]. Rows beyond the limit are shown on demand. */
function table(rows, columns, {name, found, limit = 25, sort = 1} = {}) {
	const body = html("tbody"), more = html("button", {type: "button"});
	let order = sort, down = true, shown = limit, text = "";
	const heads = columns.map(([title], i) => html("th", {scope: "col"}, html("button", {type: "button", onclick: () => {
		down = order === i ? !down : i > 0;
		order = i;
		draw();
	}}, title)));
	function draw() {
		const hits = rows.filter(row => !name || matches(text, name(row)));
		const key = columns[order][1];
		hits.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (down ? -1 : 1));
		heads.forEach((head, i) => i === order ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
		body.replaceChildren(...hits.slice(0, shown).map(row => html("tr", {class: found && found(row) ? "found" : null},
			columns.map(([, , show, kind]) => html("td", {class: kind || null}, show(row))))));
		more.hidden = hits.length <= shown;
		more.textContent = `show ${number(Math.min(200, hits.length - shown))} more of ${number(hits.length)}`;
	}
	more.addEventListener("click", () => (shown += 200, draw()));
	if (name)
		searched.push(now => (text = now, draw()));
	draw();
	return html("div", {}, html("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": "table"}, html("table", {}, html("thead", {}, html("tr", {}, heads)), body)), html("div", {class: "bar"}, more));
}

const loadBar = (share, color) => [html("span", {class: "load"}, html("i", {style: `width:${Math.min(100, 100 * share)}%;background:${color}`})), percent(share)];
const of = (key, quantileName) => [entity => counted(entity[key]) ? entity[key][quantileName] : -1, entity => quantile(entity[key], quantileName)];

function drawTimes() {
	const device = entities.some(entity => counted(entity.gpu_span));
	const columns = [
		["entity", entity => entity.name, entity => entity.shown],
		["in compute", entity => entity.host, entity => loadBar(entity.host, "var(--host)")],
		["on the device", entity => entity.device, entity => entity.timed ? loadBar(entity.device, "var(--device)") : MISSING],
		["ticks", entity => entity.ticks, entity => number(entity.ticks)],
		["submit p50", ...of("submit", "p50")], ["submit p99", ...of("submit", "p99")],
		["blocked p50", ...of("blocked", "p50")],
		["gpu_span p50", ...of("gpu_span", "p50")], ["gpu_span p99", ...of("gpu_span", "p99")],
		["done p50", ...of("done_latency", "p50")], ["done p99", ...of("done_latency", "p99")],
		["READY \u2192 compute p50", ...of("ready_to_compute", "p50")], ["READY \u2192 compute p99", ...of("ready_to_compute", "p99")],
		["most in flight", entity => entity.most_in_flight || 0, entity => entity.most_in_flight ? `${number(entity.most_in_flight)}${entity.max_in_flight ? ` of ${number(entity.max_in_flight)}` : ""}` : MISSING],
		["replay hits", entity => entity.replay ? entity.replay.hits : -1, entity => entity.replay && entity.replay.hits + entity.replay.captures ? `${number(entity.replay.hits)} of ${number(entity.ticks)}` : MISSING],
	].filter(([title]) => (device || !/device|gpu|done|flight/.test(title)) && (/blocked/.test(title) ? entities.some(entity => counted(entity.blocked)) : /replay/.test(title) ? entities.some(entity => entity.replay && entity.replay.hits + entity.replay.captures) : true));
	const unmeasured = !device && entities.some(entity => entity.most_in_flight > 0);
	section("times", "Host time and device time", `${unmeasured ? "Device time was not measured in this run: weir run --gpu-time all does. " : ""}Never one number: submit is the host's time in compute, blocked the part of it in weir's own waits, gpu_span the device work of a tick without the wait for its input, done from READY to the end of the device work.`,
		table(entities, columns.map(([title, key, show]) => [title, key, show]), {name: entity => entity.name, found: entity => entity.found >= 0}));
}

/* What all instances waited together counts as one of them. */
const waited = wait => wait.time.sum / (wait.instances || 1);

function waitsOf(entity) {
	const sums = new Map();
	const add = (kind, ns) => sums.set(kind, (sums.get(kind) || 0) + ns);
	add("worker", entity.worker * duration);
	for (const wait of list(entity.waits))
		if (counted(wait.time))
			add(causeOf(wait), waited(wait));
	return sums;
}

function waitRow(entity) {
	const sums = waitsOf(entity);
	const parts = [["compute", "in compute", entity.host - entity.blockedShare, "var(--host)", "dark"], ["blocked", "in compute, blocked", entity.blockedShare, "var(--host)", "dark blocked"],
		...WAITS.map(([cause, text]) => [cause, text, (sums.get(cause) || 0) / duration, `var(--wait-${cause})`, ""])].filter(part => part[2] > 0.001);
	const whole = Math.max(1, parts.reduce((sum, part) => sum + part[2], 0));
	const longest = list(entity.waits).filter(wait => counted(wait.time)).reduce((most, wait) => !most || waited(wait) > waited(most) ? wait : most, null);
	return html("div", {class: "stack-row"}, html("span", {class: "name", title: entity.shown}, entity.shown),
		html("div", {class: "stack", role: "img", "aria-label": `${entity.shown}: ${parts.map(part => `${part[1]} ${percent(part[2])}`).join(", ")}`},
			parts.map(([, text, share, color, kind]) => html("span", {class: kind, style: `width:${100 * share / whole}%;background:${color}`, title: `${text}: ${percent(share)}`}, share > 0.06 ? percent(share) : ""))),
		html("span", {class: "why", title: longest ? `${longest.of}: ${longest.why}` : ""}, longest ? `${percent(waited(longest) / duration)} ${longest.of}: ${longest.why}, p99 ${time(longest.time.p99)}` : "never waited"));
}

function drawWaits() {
	const holder = html("div"), more = html("button", {type: "button"});
	let shown = 30, text = "";
	function draw() {
		const hits = entities.filter(entity => matches(text, entity.name));
		if (entities.length > 30)
			hits.sort((a, b) => b.load - a.load);
		holder.replaceChildren(...hits.slice(0, shown).map(waitRow));
		more.hidden = hits.length <= shown;
		more.textContent = `show ${Math.min(100, hits.length - shown)} more of ${hits.length}`;
	}
	more.addEventListener("click", () => (shown += 100, draw()));
	section("waits", "What each entity waited for", "Shares of the run. Beside a bar: the wait that took longest, with its condition and reason.",
		legend([["var(--host)", "in compute"], ["var(--host)", "in compute, blocked", "blocked"], ...WAITS.map(([cause, name]) => [`var(--wait-${cause})`, name])]), holder, html("div", {class: "bar"}, more));
	draw();
	searched.push(now => (text = now, draw()));
}

function entityCard(entity) {
	const charts = [["submit", "compute (submit)", "var(--host)"], ["blocked", "blocked in compute", "var(--blocked)"], ["gpu_span", "device work (gpu_span)", "var(--device)"], ["done_latency", "READY to done", "var(--device)"], ["ready_to_compute", "READY to compute", "var(--wait-worker)"]]
		.filter(([key]) => counted(entity[key]));
	return html("div", {class: "card wide"}, html("h3", {}, `${entity.shown} (${entity.operator || "?"})`),
		html("p", {class: "hint number"}, `${number(entity.ticks)} ticks \u00b7 ${number(entity.received)} received \u00b7 ${number(entity.emitted)} emitted${counted(entity.gpu_span) ? ` \u00b7 device time of ${number(entity.gpu_ticks)} ticks, by ${entity.done_source || "timers"}` : ""}`),
		waitRow(entity),
		html("div", {class: "grid"}, charts.map(([key, text, color]) => html("div", {}, html("p", {class: "hint"}, `${text}: mean ${time(mean(entity[key]))}, max ${time(entity[key].max)}`), drawHistogram(entity[key], color, `${entity.name}, ${text}`)))));
}

function drawHistograms() {
	const holder = html("div", {class: "grid"}), more = html("button", {type: "button"});
	let shown = entities.length > 12 ? 6 : 12, text = "";
	function draw() {
		const hits = entities.filter(entity => matches(text, entity.name)).sort((a, b) => b.load - a.load);
		holder.replaceChildren(...hits.slice(0, shown).map(entityCard));
		more.hidden = hits.length <= shown;
		more.textContent = `show ${Math.min(20, hits.length - shown)} more of ${hits.length}`;
	}
	more.addEventListener("click", () => (shown += 20, draw()));
	section("entities", "Entities", "Distributions of their times, the busiest first. The axis of time is logarithmic; lines mark p50 and (dashed) p99.", holder, html("div", {class: "bar"}, more));
	draw();
	searched.push(now => (text = now, draw()));
}

function drawResources() {
	const none = text => html("p", {class: "hint"}, text);
	const rows = (name, content) => html("div", {class: "card wide"}, html("h3", {}, name), content);
	section("queues", "Queues", null, queues.length ? table(queues, [
		["queue", queue => queue.from, queue => `${queue.from || "inlet"} \u2192 ${queue.to || "outlet"}`],
		["full", fullness, queue => loadBar(fullness(queue), "var(--wait-room)")],
		["depth, mean", queue => queue.depth ? queue.depth.mean : 0, queue => queue.depth ? number(queue.depth.mean, 2) : MISSING],
		["max", queue => queue.depth ? queue.depth.max : 0, queue => queue.depth ? number(queue.depth.max) : MISSING],
		["capacity", queue => queue.capacity, queue => number(queue.capacity)], ["policy", queue => queue.policy || "", queue => queue.policy || MISSING],
		["pushed", queue => queue.pushed, queue => number(queue.pushed)], ["delivered", queue => queue.delivered, queue => number(queue.delivered)],
		["dropped", queue => queue.dropped || 0, queue => number(queue.dropped)],
		["closed", queue => queue.closed || 0, queue => number(queue.closed)], ["left over", queue => queue.queued || 0, queue => number(queue.queued)], ["abandoned", queue => queue.abandoned || 0, queue => number(queue.abandoned)],
	], {name: queue => `${queue.from} ${queue.to}`, found: queue => findings.some(finding => finding.of === queue.to && (finding.cause === "queue" || finding.cause === "drops"))}) : none("The graph has no connection."));
	const pools = list(run.pools), workers = list(run.workers), signals = list(run.signals);
	const size = (pool, value) => pool.unit === "bytes" ? `${number(value / 1048576, 1)} MiB` : number(value);
	section("pools", "Pools, workers, signals", null, html("div", {class: "grid pair"},
		pools.length ? rows("memory pools", table(pools, [["pool", pool => pool.name, pool => pool.name],
			["most used", pool => pool.most_used / pool.capacity, pool => loadBar(pool.most_used / Math.max(1, pool.capacity), "var(--wait-pool)")],
			["of", pool => pool.capacity, pool => `${size(pool, pool.capacity)}${pool.unit === "bytes" ? "" : " blocks"}`], ["allocations", pool => pool.allocations, pool => number(pool.allocations)],
			["waits", pool => pool.waits, pool => number(pool.waits)], ["wait p99", ...of("wait_time", "p99")]], {limit: 12})) : null,
		workers.length ? rows("workers", table(workers.map((worker, i) => ({...worker, i})), [["worker", worker => worker.i, worker => `worker ${worker.i}`],
			["busy", worker => worker.busy, worker => loadBar((worker.busy || 0) / duration, "var(--host)")], ["asleep", worker => worker.asleep, worker => percent((worker.asleep || 0) / duration)],
			["ticks", worker => worker.ticks, worker => number(worker.ticks)], ["steals", worker => worker.steals, worker => number(worker.steals)], ["wake-ups", worker => worker.wakes, worker => number(worker.wakes)]], {limit: 12})) : null,
		signals.length ? rows("signals: armed until fired", html("div", {}, table(signals, [["kind", signal => signal.kind, signal => signal.kind], ["count", signal => signal.count, signal => number(signal.count)],
			["p50", ...of("latency", "p50")], ["p99", ...of("latency", "p99")], ["max", ...of("latency", "max")]]), signals.filter(signal => counted(signal.latency)).map(signal => drawHistogram(signal.latency, "var(--device)", signal.kind, WIDE)))) : null));
}

/* --- the slowest frames of a trace --- */

const PARTS = [["waited", "arrived until READY", "var(--wait-messages)"], ["queued", "READY until compute", "var(--wait-worker)"], ["computed", "in compute", "var(--host)"], ["in stream", "compute's end until its device work begins", "var(--wait-stream)"], ["device", "device work", "var(--device)"]];
const nameOf = index => index < 0 ? "the program" : entities[index].shown;

function partsOf(step) {
	const arrived = Math.min(step.arrived, step.ready);
	const [from, to] = step.device;
	return [arrived, step.ready, step.ready, step.begin, step.begin, step.end, from === null ? null : step.end, from === null ? null : Math.max(from, step.end), from, to];
}

function drawTimeline(frame) {
	const left = 128, width = 1100, line = 26, begin = frame.origin, end = begin + frame.latency, span = Math.max(1, frame.latency);
	const rows = new Map();
	frame.steps.forEach(step => rows.has(step.entity) || rows.set(step.entity, rows.size));
	const x = at => left + Math.max(0, Math.min(1, (at - begin) / span)) * (width - left - 8);
	const height = rows.size * line + 26;
	const made = svg("svg", {class: "chart timeline", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `timeline of ${time(frame.latency)}`});
	const slice = (from, to, row, color, strong, text) => from !== null && to >= begin && from <= end && made.append(svg("rect", {x: x(from), y: row * line + (strong ? 3 : 7), width: Math.max(1.2, x(to) - x(from)), height: line - (strong ? 6 : 14), rx: 2, style: `fill:${color};${strong ? "stroke:var(--text);stroke-width:0.8" : "opacity:0.38"}`}, svg("title", {}, text)));
	for (const [entity, tick, from, to, deviceFrom, deviceTo] of frame.around)
		if (rows.has(entity)) {
			slice(from, to, rows.get(entity), "var(--host)", false, `${nameOf(entity)}, tick ${tick}: compute ${time(to - from)}`);
			slice(deviceFrom, deviceTo, rows.get(entity), "var(--device)", false, `${nameOf(entity)}, tick ${tick}: device work ${time(deviceTo - deviceFrom)}`);
		}
	for (const step of frame.steps) {
		const at = partsOf(step), row = rows.get(step.entity);
		PARTS.forEach(([, text, color], i) => (i === 2 || at[2 * i + 1] > at[2 * i]) && slice(at[2 * i], at[2 * i + 1], row, color, true, `${nameOf(step.entity)}, tick ${step.tick}: ${text} ${time(at[2 * i + 1] - at[2 * i])}`));
	}
	for (const [entity, row] of rows)
		made.append(svg("line", {class: "axis", x1: 0, x2: width, y1: (row + 1) * line, y2: (row + 1) * line}),
			svg("text", {class: "mark", x: 2, y: row * line + 17}, nameOf(entity).length > 18 ? `${nameOf(entity).slice(0, 17)}\u2026` : nameOf(entity)));
	for (let i = 0; i <= 5; i++)
		made.append(svg("text", {x: x(begin + span * i / 5), y: height - 7, "text-anchor": i === 5 ? "end" : i ? "middle" : "start"}, i ? time(span * i / 5) : "0"));
	return made;
}

function drawFrames() {
	if (!frames || !frames.frames.length)
		return;
	const picture = html("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": "timeline"}), way = html("div"), typical = frames.frames.find(frame => frame.typical);
	const ordinary = new Map((typical ? typical.steps : []).map(step => [step.entity, step]));
	const buttons = frames.frames.map((frame, i) => html("button", {type: "button", "aria-pressed": "false", onclick: () => show(frame, i)},
		frame.typical ? `a typical one: ${time(frame.latency)}` : `${i + 1}. ${nameOf(frame.steps[frame.steps.length - 1].entity)} #${frame.steps[frame.steps.length - 1].tick}: ${time(frame.latency)}`));
	const lengths = step => {
		const at = partsOf(step);
		return PARTS.map((part, i) => i).map(i => at[2 * i] === null ? null : at[2 * i + 1] - at[2 * i]);
	};
	const cells = step => {
		const usual = ordinary.get(step.entity), usually = usual ? lengths(usual) : [];
		return lengths(step).map((length, i) => html("td", {}, length === null ? MISSING : time(length), usual && !frames.shown.typical && length > 2 * usually[i] && length > 0.02 * frames.shown.latency ? html("b", {title: `typical: ${time(usually[i])}`}, ` \u2191 (${time(usually[i])})`) : null));
	};
	function show(frame, index) {
		frames.shown = frame;
		buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === index)));
		picture.replaceChildren(drawTimeline(frame));
		way.replaceChildren(html("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": "the way of the frame"}, html("table", {class: "way"}, html("thead", {}, html("tr", {}, ["entity", "tick", ...PARTS.map(part => part[0])].map(title => html("th", {scope: "col"}, title)), html("th", {scope: "col", class: "left"}, "waited for"))),
			html("tbody", {}, frame.steps.map(step => html("tr", {}, html("td", {}, nameOf(step.entity)), html("td", {}, number(step.tick)), cells(step), html("td", {class: "left"}, step.wait ? frames.waits[step.wait - 1] : MISSING)))))));
	}
	section("frames", "The slowest frames", `Of ${number(frames.frame_count)} in the trace. The way of the oldest part of each frame: waited from its arrival until the entity was READY, queued until a worker took it, computed, and then on the device. Pale: other ticks meanwhile.${frames.dropped ? ` The trace lacks ${number(frames.dropped)} records of the begin.` : ""}`,
		html("div", {class: "frames"}, buttons), legend(PARTS.map(([name, text, color]) => [color, `${name}: ${text}`])), picture, way, typical ? html("p", {class: "hint"}, "\u2191: more than twice as long as in the typical frame, whose time is in parentheses.") : null);
	show(frames.frames[0], 0);
}

/* --- the page --- */

drawTop();
drawGraph();
drawPaths();
drawFrames();
drawWaits();
drawTimes();
drawHistograms();
drawResources();
if (list(run.notes).length)
	section("notes", "Notes", null, html("ul", {}, run.notes.map(note => html("li", {}, note))));
const search = html("input", {type: "search", placeholder: "find an entity", "aria-label": "find an entity", oninput: () => searched.forEach(apply => apply(search.value.trim().toLowerCase()))});
contents.append(search);
document.getElementById("contents").append(contents);
document.getElementById("bottom").append(`Made by weir report from the statistics of weir ${run.version || "?"}. `, `Times on ${run.where || "?"}${run.backend === "sim" ? " are virtual" : ""}.`);
