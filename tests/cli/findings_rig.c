#include "findings_rig.h"

#include <string.h>

struct cli_findings findings_of(const char *bytes)
{
	struct cli_recorded recorded;
	struct cli_findings findings;
	char fault[512];

	if (!cli_recorded_read(&recorded, bytes, strlen(bytes), fault))
		fail_msg("%s", fault);
	cli_findings_make(&findings, &recorded);
	cli_recorded_finish(&recorded);
	for (size_t i = 0; i < findings.count; i++)
		findings.list[i].what = NULL; /* was the record's */
	return findings;
}

void one_finding(const char *bytes, enum cli_cause cause, size_t entity, const char *part)
{
	struct cli_findings findings = findings_of(bytes);

	assert_int_equal(findings.count, 1);
	assert_string_equal(cli_cause_text(findings.list[0].cause), cli_cause_text(cause));
	assert_int_equal(findings.list[0].entity, entity);
	if (!strstr(findings.list[0].text, part))
		fail_msg("%s", findings.list[0].text);
}
