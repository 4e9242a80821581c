package service

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/cmd/lieudit/guide"
	"lieudit/cmd/lieudit/instance"
	"lieudit/projections/searchindex"
	addressmeili "lieudit/queries/address/meili"
	"lieudit/schemas/body"
)

// Each part of /readyz says in both languages what it is and what can be done, and no other part does.
func TestEveryPartOfReadinessHasAdviceInBothLanguages(t *testing.T) {
	t.Parallel()
	s := &service{instance: &instance.Instance{Parts: instance.Parts{SiteIndexer: &searchindex.Indexer{}}}, addressIndex: &addressmeili.Indexes{}}
	var names []string
	for _, c := range s.components() {
		names = append(names, c.Name)
		for _, text := range []body.Text{partTexts[c.Name].about, partTexts[c.Name].advice} {
			if text.FR == "" || text.EN == "" || text.FR == text.EN {
				t.Errorf("%s: got %+v, want a text in both languages", c.Name, text)
			}
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff(names, slices.Sorted(maps.Keys(partTexts))); diff != "" {
		t.Errorf("(-components +texts):\n%s", diff)
	}
}

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
