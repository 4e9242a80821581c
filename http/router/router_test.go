package router_test

import (
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/http/kit"
	"lieudit/http/router"
	"lieudit/schemas/refusal"
)

type row struct{ method, path string }

var table = router.New("/base", []row{
	{"GET", "/sites/{code}"}, {"PUT", "/sites/{code}"}, {"POST", "/sites/{code}:close"}, {"POST", "/sites"}, {"GET", "/things/{id:[a-z]+}/parts/{part}"},
}, func(r row) router.Pattern { return router.Pattern{Method: r.method, Path: r.path} })

func TestARouteIsFoundByItsExactMethodAndPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, target string
		want           row
		vars           map[string]string
	}{
		{"GET", "/base/sites/a", row{"GET", "/sites/{code}"}, map[string]string{"code": "a"}},
		{"GET", "/base/sites/a?b=c", row{"GET", "/sites/{code}"}, map[string]string{"code": "a"}},
		{"PUT", "/base/sites/a%20%C3%A9%2Fb", row{"PUT", "/sites/{code}"}, map[string]string{"code": "a é/b"}},
		{"POST", "/base/sites/a:close", row{"POST", "/sites/{code}:close"}, map[string]string{"code": "a"}},
		{"GET", "/base/sites/a:b", row{"GET", "/sites/{code}"}, map[string]string{"code": "a:b"}},
		{"POST", "/base/sites/a:b:close", row{"POST", "/sites/{code}:close"}, map[string]string{"code": "a:b"}},
		{"POST", "/base/sites/a%3Aclose:close", row{"POST", "/sites/{code}:close"}, map[string]string{"code": "a:close"}},
		{"PUT", "/base/sites/a%3Aclose", row{"PUT", "/sites/{code}"}, map[string]string{"code": "a:close"}},
		{"PUT", "/base/sites/a%3aclose", row{"PUT", "/sites/{code}"}, map[string]string{"code": "a:close"}},
		{"GET", "/base/sites/a:closed", row{"GET", "/sites/{code}"}, map[string]string{"code": "a:closed"}},
		{"GET", "/base/sites/n:*@+~1", row{"GET", "/sites/{code}"}, map[string]string{"code": "n:*@+~1"}},
		{"POST", "/base/sites", row{"POST", "/sites"}, nil},
		{"POST", "/base/sites?a", row{"POST", "/sites"}, nil},
		{"GET", "/base/things/x/parts/..", row{"GET", "/things/{id:[a-z]+}/parts/{part}"}, map[string]string{"id": "x", "part": ".."}},
	} {
		got, vars, err := table.Match(httptest.NewRequest(c.method, c.target, nil), true)
		if err != nil || got != c.want || !cmp.Equal(vars, c.vars) {
			t.Errorf("%s %s: %v %v %v, want %v %v", c.method, c.target, got, vars, err, c.want, c.vars)
		}
	}
}

func TestNothingIsCleanedOrGuessed(t *testing.T) {
	t.Parallel()
	for _, target := range []string{
		"/", "/base", "/base/", "/sites/a", "/base/sites/", "/base//sites/a", "/base/sites/a/", "/base/sites/a/b", "/base/x/../sites/a",
		"/base/./sites/a", "/base/site%73/a", "/base%2Fsites/a", "/BASE/sites/a", "/base/things/X/parts/y", "/base/things//parts/y",
	} {
		_, _, err := table.Match(httptest.NewRequest("GET", target, nil), true)
		if !errors.Is(err, refusal.NotFound) {
			t.Errorf("GET %s: %v, want 404", target, err)
		}
	}
}

func TestAWrongMethodIsAnsweredWithTheAllowedOnes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, target string
		preflight      bool
		allow          string
	}{
		{"DELETE", "/base/sites/a", true, "GET, OPTIONS, PUT"},
		{"DELETE", "/base/sites/a", false, "GET, PUT"},
		{"HEAD", "/base/sites", false, "POST"},
		{"DELETE", "/base/sites/a:close", false, "POST"},
		{"PUT", "/base/sites/a:close", false, "POST"},
		{"POST", "/base/sites/a%3Aclose", false, "GET, PUT"},
		{"get", "/base/sites/a", false, "GET, PUT"},
	} {
		_, _, err := table.Match(httptest.NewRequest(c.method, c.target, nil), c.preflight)
		w := httptest.NewRecorder()
		kit.WriteError(w, slog.New(slog.DiscardHandler), err)
		if got := w.Header().Get("Allow"); w.Code != 405 || got != c.allow {
			t.Errorf("%s %s: %d, Allow %q; want 405, %q", c.method, c.target, w.Code, got, c.allow)
		}
	}
}
