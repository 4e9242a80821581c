package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestEachMetricIsDeclaredOnceAndEndsWithItsUnit(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range table() {
		if seen[d.name] {
			t.Errorf("%s is declared twice", d.name)
		}
		seen[d.name] = true
		if !strings.HasPrefix(d.name, "lieudit_") || !strings.HasSuffix(d.help, ".") {
			t.Errorf("%s: want a name that begins with lieudit_ and a sentence, got %q", d.name, d.help)
		}
		if isTotal := strings.HasSuffix(d.name, "_total"); isTotal != (d.kind == counter) {
			t.Errorf("%s: its name ends with _total: %v, want that of a counter alone", d.name, isTotal)
		}
		if d.kind == histogram && !strings.HasSuffix(d.name, "_seconds") {
			t.Errorf("%s: want seconds in a histogram", d.name)
		}
	}
}

func TestAMetricThatIsNotDeclaredCannotBeRegistered(t *testing.T) {
	t.Parallel()
	value := func() float64 { return 1 }
	for name, isDeclared := range map[string]bool{"lieudit_addresses": true, "lieudit_weather": false, "": false} {
		func() {
			defer func() {
				if refused := recover() != nil; refused == isDeclared {
					t.Errorf("%q: refused: %v, want %v", name, refused, !isDeclared)
				}
			}()
			Register(prometheus.NewRegistry(), name, value)
		}()
	}
}
