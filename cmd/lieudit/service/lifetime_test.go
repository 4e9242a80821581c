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

// The chapter has one section a part of /readyz, in the order in which parts are listed here.
func TestTheGuideExplainsEveryPartOfReadiness(t *testing.T) {
	t.Parallel()
	s := &service{instance: &instance.Instance{Parts: instance.Parts{SiteIndexer: &searchindex.Indexer{}}}, addressIndex: &addressmeili.Indexes{}}
	var want []string
	for _, c := range s.components() {
		want = append(want, c.Name)
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
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-components +sections):\n%s", diff)
	}
}
