package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/body"
)

// TestAnExportThatIsImportedChangesNothing exports sites whose texts are hard on formats, and imports each export again:
// every site stays as it is, with its version.
func TestAnExportThatIsImportedChangesNothing(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	svc.runCommand(t, `account open "Mairie de Mende" --id mende --plan STARTER`)
	key := strings.TrimSpace(svc.runCommand(t, "key issue mende"))
	file := filepath.Join(t.TempDir(), "sites")
	svc.mustSend(t, key, "POST /locations/referentiels", `{"code":"shops"}`)
	const count = 150
	svc.mustSend(t, key, "POST /locations/referentiels/shops/sites:sync", sitesWithOddText(count))
	for _, format := range []string{"csv", "csv --excel", "geojson", "ndjson"} {
		svc.runCommand(t, "sites export --referential shops --key "+key+" --out "+file+" --format "+format)
		var done body.Synced
		out := svc.runCommand(t, "sites import "+file+" --referential shops --json --key "+key)
		if err := json.Unmarshal([]byte(out), &done); err != nil || done.Unchanged != count || done.ActiveBefore != count || done.ActiveAfter != count {
			t.Errorf("%s: %v %s", format, err, out)
		}
	}
	if got := svc.mustSend(t, key, "GET /locations/referentiels/shops/sites?limit=1000", ""); strings.Count(got, `"version":1,`) != count {
		t.Errorf("some sites are not of version 1: %.2000s", got)
	}
}

// sitesWithOddText is a sync of n sites with texts that a format could change.
func sitesWithOddText(n int) string {
	r := rand.New(rand.NewPCG(48, 2026))
	odd := []string{
		"Chez Paul", `"`, `""`, "a;b", "a,b", "a\nb", "a\r\nb", " a ", "=1+1", "+33 4", "@x", "é😀", "\u00a0x", `["a"]`, "1e-7", `\`, "\t", "\u2028", "<b>&", "4,5", "null",
	}
	word := func() string { return odd[r.IntN(len(odd))] }
	var sites []map[string]any
	for i := range n {
		s := map[string]any{
			"external_id": fmt.Sprintf("s.~_-%03d", i), "nom": word(), "telephone": "+33 4 66 00 00 00", "email": "a@b.fr", "horaires": map[string]any{"texte": word()},
			"adresse": map[string]any{"ligne_1": word(), "commune": word()}, "tags": []string{"t" + word(), word() + "u"},
			"proprietes": map[string]any{"x": word(), "y": json.Number("1e-7"), "z": map[string]any{word(): []any{nil, word(), 1.5}}},
		}
		if r.IntN(2) == 0 {
			s["lat"], s["lon"] = 90*r.Float64(), -1e-7
		}
		sites = append(sites, s)
	}
	text, _ := json.Marshal(map[string]any{"sites": sites}) // made of what can be written
	return string(text)
}
