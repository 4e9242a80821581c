package instance

import (
	"strings"
	"testing"

	"lieudit/projections/usage"
)

func TestExhaustiveReadModelsHandleEveryEventOfTheirCategories(t *testing.T) {
	t.Parallel()
	exhaustive := 0
	for _, m := range append(coreReadModels(), usage.Model) {
		for _, missing := range m.Unhandled() {
			if m.IsExhaustive || strings.HasPrefix(missing, "sync.") { // who handles a commit handles what it makes real
				t.Errorf("%s has no handler for %s, and the catalog does not say that it changes nothing", m.Name, missing)
			}
		}
		if m.IsExhaustive {
			exhaustive++
		}
	}
	if exhaustive != 2 {
		t.Errorf("%d exhaustive read models, want those of accounts and of the audit trail", exhaustive)
	}
}
