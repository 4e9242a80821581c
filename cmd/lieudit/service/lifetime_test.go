package service

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/cmd/lieudit/guide"
	"lieudit/cmd/lieudit/instance"
	"lieudit/projections/searchindex"
	addressmeili "lieudit/queries/address/meili"
)

// The chapter has one section a part of /readyz, and names those without which an instance is not ready.
func TestTheGuideExplainsEveryPartOfReadiness(t *testing.T) {
	t.Parallel()
	s := &service{instance: &instance.Instance{Parts: instance.Parts{SiteIndexer: &searchindex.Indexer{}}}, addressIndex: &addressmeili.Indexes{}}
	var want, required []string
	for _, c := range s.components() {
		want = append(want, c.Name)
		if c.Required {
			required = append(required, c.Name)
		}
	}
	chapter, err := guide.FindChapter("readiness")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(chapter.Text) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			got = append(got, strings.TrimSpace(name))
		}
	}
	_, sentence, _ := strings.Cut(strings.Join(strings.Fields(chapter.Text), " "), "only while one of the parts ")
	sentence, _, _ = strings.Cut(sentence, " fails.")
	if told := strings.Split(strings.ReplaceAll(sentence, " or ", ", "), ", "); !slices.Equal(told, required) {
		t.Errorf("the chapter says that an instance is not ready without %q, want %q", told, required)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-components +sections):\n%s", diff)
	}
}
