package address

import (
	"testing"
)

func TestCommunesWithoutAddressesAreKnownAllTheSame(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	if r, ok := e.View("31555"); !ok || r.Label != "Toulouse" || r.Type != Municipality || r.Population == 0 || r.Lon == 0 || r.Region.Name == "" {
		t.Errorf("Toulouse is %+v", r)
	}
	if r, ok := e.View("99999"); ok {
		t.Errorf("a code that is none shows %+v", r)
	}
	for _, line := range []string{"Toulouse", "saint-étienne", "LA ROCHELLE"} {
		if found, err := e.Verify(t.Context(), Query{Text: line, Limit: 5}); err != nil || len(found) > 0 {
			t.Errorf("%s: %v, %v, want nothing and no error", line, found, err)
		}
	}
	if found, err := e.Complete(t.Context(), Query{Text: "toulou", Limit: 5}); err != nil || len(found) > 0 {
		t.Errorf("the beginning of a name: %v, %v, want nothing and no error", found, err)
	}
}
