package guide

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/http/pages/page/pagetest"
	"lieudit/schemas/grant"
)

func TestChaptersAreReadAsBlocks(t *testing.T) {
	t.Parallel()
	text := "# Title\n\nA *term* and `code`, see `lieudit guide data`\nand `lieudit guide nothing`.\n\n- one\n  more\n- two `a|b`\n\n" +
		"## A `part` of it\n```\n# no heading\n\n- no list\n```\n| a | b |\n|---|---|\n| `x \\| y` | 2 * 3 |\n\n### Small"
	want := []block{
		{Kind: paragraph, Spans: []span{{Text: "A "}, {Text: "term", IsTerm: true}, {Text: " and "}, {Text: "code", IsCode: true}, {Text: ", see "},
			{Text: "lieudit guide data", IsCode: true, Link: "/guide/data"}, {Text: " and "}, {Text: "lieudit guide nothing", IsCode: true}, {Text: "."}}},
		{Kind: list, Items: [][]span{{{Text: "one more"}}, {{Text: "two "}, {Text: "a|b", IsCode: true}}}},
		{Kind: heading, ID: "a-part-of-it", Spans: []span{{Text: "A "}, {Text: "part", IsCode: true}, {Text: " of it"}}},
		{Kind: code, Code: "# no heading\n\n- no list"},
		{Kind: table, Head: [][]span{{{Text: "a"}}, {{Text: "b"}}}, Rows: [][][]span{{{{Text: "x | y", IsCode: true}}, {{Text: "2 * 3"}}}}},
		{Kind: subheading, ID: "small", Spans: []span{{Text: "Small"}}},
	}
	if diff := cmp.Diff(want, parse(text, map[string]bool{"data": true})); diff != "" {
		t.Error(diff)
	}
}

func TestAChapterShowsHostileTextAsText(t *testing.T) {
	t.Parallel()
	for _, hostile := range pagetest.HostileTexts {
		line := strings.ReplaceAll(hostile, "\n", " ")
		text := "# " + line + "\n\n" + line + "\n\n- " + line + "\n\n## " + line + "\n\n```\n" + line + "\n```\n\n| " + line + " |\n|---|\n| `" + line + "` |\n"
		s := Section([]Chapter{{"start", line, text}, {"data", line, "# Data"}})
		a := pagetest.New(grant.RoleCustomer)
		a.ExpectSafe(t, s, "/guide", line)
		a.ExpectSafe(t, s, "/guide/start", line)
		a.Get(t, s, "/guide/nothing", "fr", 404)
	}
}
