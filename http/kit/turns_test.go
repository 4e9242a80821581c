package kit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lieudit/queries/worker/workertest"
)

func TestALargeBodyTakesTurnsAtAWorker(t *testing.T) {
	t.Parallel()
	d := NewDecoder[struct {
		Rows []struct {
			Note string `json:"note"`
		} `json:"rows"`
	}]()
	decode := func(rows int) func(context.Context) error {
		text := `{"rows":[` + strings.Repeat(`{"note":"`+strings.Repeat("x", 1000)+`"},`, rows) + `{"note":""}]}`
		return func(ctx context.Context) error {
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(text))
			v, err := d.DecodeBody(r)
			if err == nil && len(v.Rows) != rows+1 {
				t.Errorf("got %d rows, want %d", len(v.Rows), rows+1)
			}
			return err
		}
	}
	workertest.CheckTurns(t, 4, decode(2000))
	if workertest.NeedsWorker(t, decode(20)) {
		t.Error("a common body needs a worker")
	}
}
