package address_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/bench/address"
	"lieudit/cmd/bench/measure"
	"lieudit/queries/address/officialtest"
	"lieudit/schemas/meiliclient/meilitest"
)

func TestDamagedAddressesAreFoundInMeilisearch(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(officialtest.Folder(), "ban", "*.csv.gz"))
	if err != nil || len(files) == 0 {
		officialtest.SkipOrFail(t, err)
	}
	server, key, _ := strings.Cut(os.Getenv(meilitest.EnvVariable), "#")
	if server == "" {
		t.Skipf("no Meilisearch: start one and name it in %s, as http://127.0.0.1:7700#KEY", meilitest.EnvVariable)
	}
	o := address.Options{Files: files, Questions: 40, Meilisearch: strings.Replace(server, "://", "://"+key+"@", 1), FigureDuration: time.Millisecond, Connections: 1}
	firstOfEngine := map[string]float64{}
	err = address.Run(t.Context(), t.TempDir(), o, measure.Output{Progress: func(string, int, int) {}, Report: func(f measure.Figure) error {
		kind, index, first := f.Label("damage"), f.Label("index"), f.Extra[address.ScoreFirst]
		if kind == "" {
			return nil
		}
		if index == "engine" {
			firstOfEngine[kind] = first
		}
		if f.Extra[address.ScoreFalseExact] > 0 || first < firstOfEngine[kind]-f.Extra[address.ScoreAsked]/20 {
			t.Errorf("%s, %s: %v; the own index has %v first", kind, index, f.Extra, firstOfEngine[kind])
		}
		return nil
	}})
	if err != nil || len(firstOfEngine) == 0 {
		t.Errorf("%d kinds, %v", len(firstOfEngine), err)
	}
}
