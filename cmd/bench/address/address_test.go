package address_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/bench/address"
	"lieudit/queries/address/officialtest"
	"lieudit/queries/locations/meili/meilitest"
)

func TestDamagedAddressesAreFoundInMeilisearch(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(officialtest.Folder(), "ban", "*.csv.gz"))
	if err != nil || len(files) == 0 {
		officialtest.Missing(t, err)
	}
	server, key, _ := strings.Cut(os.Getenv(meilitest.EnvVariable), "#")
	if server == "" {
		t.Skipf("no Meilisearch: start one and name it in %s, as http://127.0.0.1:7700#KEY", meilitest.EnvVariable)
	}
	o := address.Options{Dir: t.TempDir(), Files: files, Questions: 40, Meilisearch: strings.Replace(server, "://", "://"+key+"@", 1), FigureDuration: time.Millisecond, Connections: 1,
		Progress: func(string, int, int) {}}
	own := map[string]int{}
	err = address.Run(t.Context(), o, address.Reporter{
		OnFigure: func(address.Figure) error { return nil },
		OnScore: func(s address.Score) error {
			if s.Target == "engine" {
				own[s.Kind] = s.Top1
			}
			if s.FalseExact > 0 || s.Top1 < own[s.Kind]-s.Questions/20 {
				t.Errorf("%s, %s: %d of %d first, %d false exact; the own index has %d", s.Kind, s.Target, s.Top1, s.Questions, s.FalseExact, own[s.Kind])
			}
			return nil
		},
	})
	if err != nil || len(own) == 0 {
		t.Errorf("%d kinds, %v", len(own), err)
	}
}
