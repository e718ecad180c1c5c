/* What a run's statistics show: the findings and the page of `weir report`. */
#include "python/module.h"

#include <cstdlib>

extern "C" {
#include "cli/cli.h"
}

namespace weir_python
{

/* (JSON of the findings, the page) of a run's statistics. */
static nb::object report_of(std::string run)
{
	struct cli_report_texts texts;

	cli_report_texts(run.data(), &texts);
	std::unique_ptr<char, void (*)(void *)> findings(texts.findings, free), page(texts.page, free);
	if (*texts.fault)
		raise(WEIR_E_INVALID, texts.fault);
	if (!findings || !page)
		throw std::bad_alloc();
	return nb::make_tuple(text_of(findings.get()), text_of(page.get()));
}

void bind_report(nb::module_ &module)
{
	module.def("report_of", report_of);
}

} // namespace weir_python
