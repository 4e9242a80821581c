package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/service"
)

// wideRows is the rows of n sites, each of some 1,400 bytes.
func wideRows(n int) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"external_id":"s%05d","nom":"Boutique %d","lat":44.5,"lon":3.5,"proprietes":{"note":"%s"}}`, i, i, strings.Repeat("x", 1300))
	}
	return strings.Join(rows, ",")
}

// endlessReader is a body that has no end.
type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestBodiesOf15MBAreWrittenAndLargerOnesThan64MiBAreNot(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	svc.runCommand(t, `account open Chaîne --id chain --plan BUSINESS`)
	key := strings.TrimSpace(svc.runCommand(t, "key issue chain"))
	svc.mustSend(t, key, "POST /locations/referentiels", `{"code":"shops"}`)
	const sync = "/locations/referentiels/shops/sites:sync"
	rows := wideRows(11_000)
	for _, c := range []struct {
		what    string
		content io.Reader
		length  int64
		status  int
		want    string
	}{
		{"15 MB", strings.NewReader(`{"sites":[` + rows + `]}`), -1, 200, `"crees":11000,`},
		{"one site too many", strings.NewReader(`{"sites":[` + rows + `,{"external_id":"x"}]}`), -1, 409, `"sites_actifs":11000,"capacite":10000,"plafond":11000`},
		{"broken off", strings.NewReader(`{"sites":[` + rows[:len(rows)/2]), -1, 400, `Request too short or invalid`},
		{"200 MB, as it says", io.LimitReader(endlessReader{}, 200<<20), 200 << 20, 413, `Request body too large`},
		{"endless", endlessReader{}, -1, 413, `Request body too large`},
		{"unchanged", strings.NewReader(`{"sites":[` + rows + `]}`), -1, 200, `"inchanges":11000,`},
	} {
		if status, got := svc.upload(t, key, sync, c.content, c.length); status != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %s", c.what, status, got)
		}
	}
	if got := svc.mustSend(t, key, "GET /me", ""); !strings.Contains(got, `"utilise":5,`) { // neither 400 nor 413 count
		t.Errorf("counted otherwise: %s", got)
	}
}
