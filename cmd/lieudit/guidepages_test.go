package main

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/guide"
	guidepages "lieudit/http/pages/guide"
	"lieudit/http/pages/page/pagetest"
	"lieudit/schemas/grant"
)

// TestChaptersAreWholeAsPages holds the chapters to the Markdown that the pages read: no mark of it is left, and no word is lost.
func TestChaptersAreWholeAsPages(t *testing.T) {
	t.Parallel()
	found, err := guide.Chapters()
	if err != nil {
		t.Fatal(err)
	}
	var chapters []guidepages.Chapter
	for _, c := range found {
		chapters = append(chapters, guidepages.Chapter(c))
	}
	section, a := guidepages.Section(chapters), pagetest.New(grant.RoleOperator)
	word, tag := regexp.MustCompile(`[\p{L}\p{N}]+`), regexp.MustCompile(`<[^>]*>`)
	for _, c := range found {
		a.ExpectSafe(t, section, "/guide/"+c.Name, "")
		_, article, _ := strings.Cut(a.Get(t, section, "/guide/"+c.Name, "en", 200), "<article")
		article, _, _ = strings.Cut("<article"+article, `<nav class="actions"`)
		outsideCode := regexp.MustCompile(`(?s)<code>.*?</code>`).ReplaceAllString(article, "")
		for _, mark := range []string{"```", "`", "|--", "**", "\n# ", "<p>- "} {
			if strings.Contains(outsideCode, mark) {
				t.Errorf("%s: %q is left", c.Name, mark)
			}
		}
		text := regexp.MustCompile(`(?s)<button.*?</button>|</t[dh]>`).ReplaceAllString(article, " ")
		text = html.UnescapeString(tag.ReplaceAllString(text, ""))
		want, got := word.FindAllString(c.Text, -1), word.FindAllString(text, -1)
		if strings.Join(want, " ") != strings.Join(got, " ") {
			for i := range min(len(want), len(got)) {
				if want[i] != got[i] {
					t.Errorf("%s: word %d is %q, want %q, after %q", c.Name, i, got[i], want[i], want[max(0, i-5):i])
					break
				}
			}
		}
	}
}
