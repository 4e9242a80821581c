package model

import "testing"

func TestAPatchOfTheNoteLeavesTheRest(t *testing.T) {
	t.Parallel()
	id := siteID{"lieux-0", "s0"}
	begin := places{}.withReferential("lieux-0", referential{name: "r", changes: 1}).
		withSites(map[siteID]site{id: {name: "a", note: "old", isActive: true, version: 4}})
	many := limits{100, 5, 1}
	for _, c := range []struct {
		name     string
		commands []PlacesCommand
		want     site
	}{
		{"a note", []PlacesCommand{PatchNote{"lieux-0", "s0", "new"}}, site{"a", "new", true, 5}},
		{"the same note", []PlacesCommand{PatchNote{"lieux-0", "s0", "old"}}, site{"a", "old", true, 4}},
		{"a note after a content", []PlacesCommand{PatchSite{"lieux-0", "s0", "b"}, PatchNote{"lieux-0", "s0", "new"}}, site{"b", "new", true, 6}},
		{"a content after a note", []PlacesCommand{PatchNote{"lieux-0", "s0", "new"}, PatchSite{"lieux-0", "s0", "b"}}, site{"b", "", true, 6}},
		{"a put", []PlacesCommand{PutSite{"lieux-0", "s0", "a"}}, site{"a", "", true, 5}},
		{"a deactivation", []PlacesCommand{SwitchSite{"lieux-0", "s0", false}}, site{"a", "old", false, 5}},
		{"a sync", []PlacesCommand{SyncSites{Code: "lieux-0", Rows: []Row{{"s0", "a"}}}}, site{"a", "", true, 5}},
	} {
		p := begin
		for _, command := range c.commands {
			p = command.apply(p, many)[0].state
		}
		if got := p.sites[id]; got != c.want {
			t.Errorf("%s: the site is %+v, want %+v", c.name, got, c.want)
		}
	}
}
