package locations

import "testing"

// Another instance changes the referential after the append of each command and before its answer.
func TestAReferentialIsShownAsTheCommandLeftIt(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	other := s.newInstance(s.store)
	l := s.newInstance(&hookedStore{Store: s.store, after: func(string) error {
		_, _, err := other.RenameReferential(t.Context(), "a", shopMeta, "shops", "Another name")
		return err
	}})
	opened, _, err := l.OpenReferential(t.Context(), "a", shopMeta, "shops", "Shops")
	if err != nil || opened.Name != "Shops" {
		t.Errorf("opened: shown as %q, %v", opened.Name, err)
	}
	renamed, _, err := l.RenameReferential(t.Context(), "a", shopMeta, "shops", "Stores")
	if err != nil || renamed.Name != "Stores" {
		t.Errorf("renamed: shown as %q, %v", renamed.Name, err)
	}
	unchanged, _, err := l.RenameReferential(t.Context(), "a", shopMeta, "shops", "Another name")
	if err != nil || unchanged.Name != "Another name" {
		t.Errorf("given the name that it has: shown as %q, %v", unchanged.Name, err)
	}
}
