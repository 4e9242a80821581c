package osrm_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"lieudit/eventstore/deadlinetest"
	"lieudit/queries/route"
	"lieudit/queries/route/routertest"
)

func TestCodesOfTheServerAreErrorsOfRouters(t *testing.T) {
	t.Parallel()
	bounds := routertest.Bounds(t, "oneway", "0A BE")
	for _, c := range []struct {
		code  string
		avoid route.Avoid
		want  error
	}{
		{"NoRoute", 0, route.ErrNoRoute},
		{"NoRoute", route.Tolls, route.ErrNoRoute},
		{"InvalidValue", route.Tolls, route.ErrUnsupported},
		{"InvalidValue", 0, route.ErrUnavailable},
		{"TooBig", 0, route.ErrUnavailable},
		{"InvalidQuery", 0, route.ErrUnavailable},
		{"InvalidUrl", 0, route.ErrUnavailable},
	} {
		stub := routertest.StartStub(t, nil, routertest.Always(routertest.Replace))
		stub.Status, stub.Body = http.StatusBadRequest, fmt.Sprintf(`{"code": %q, "message": "why"}`, c.code)
		q := route.Query{Profile: route.Profile{Mode: route.Car, Optimization: route.Fastest, Avoid: c.avoid}, Bounds: bounds}
		if a, err := newRouter(stub.URL).Route(deadlinetest.Context(t, deadlinetest.DefaultLimit), q); !errors.Is(err, c.want) {
			t.Errorf("%s, avoiding %d: got %+v, %v, want %v", c.code, c.avoid, a, err, c.want)
		}
	}
}

func TestAPlaceWithoutARoadIsNamed(t *testing.T) {
	t.Parallel()
	stub := routertest.StartStub(t, nil, routertest.Always(routertest.Replace))
	stub.Status, stub.Body = http.StatusBadRequest, `{"code": "NoSegment", "message": "Could not find a matching segment for coordinate 0"}`
	q := route.Query{Profile: byCar, Bounds: routertest.Bounds(t, "oneway", "0A BE")}
	_, err := newRouter(stub.URL).Route(deadlinetest.Context(t, deadlinetest.DefaultLimit), q)
	var off *route.OffRoadError
	if !errors.As(err, &off) || off.Bound != 0 {
		t.Errorf("got %v", err)
	}
}

var byCar = route.Profile{Mode: route.Car, Optimization: route.Fastest}

func TestAModeWithoutAServerIsNotSupported(t *testing.T) {
	t.Parallel()
	r := newRouter("http://127.0.0.1:1")
	_, err1 := r.Route(t.Context(), route.Query{Profile: route.Profile{Mode: route.Foot}, Bounds: make([]route.Bound, 2)})
	_, err2 := r.Matrix(t.Context(), route.MatrixQuery{Profile: route.Profile{Mode: route.Bike}})
	_, err3 := r.Isochrone(t.Context(), route.IsochroneQuery{Profile: byCar})
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, route.ErrUnsupported) {
			t.Errorf("got %v, want %v", err, route.ErrUnsupported)
		}
	}
}

// exclusionsAsked asks for a route while a server finds none unless the exclusions are among those that it finds one for, and knows
// only some of them. It returns the exclusions in the order in which they were asked for.
func exclusionsAsked(t *testing.T, avoid route.Avoid, known, good []string) (asked []string, err error) {
	t.Helper()
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		excluded := r.URL.Query().Get("exclude")
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, excluded)
		code := "NoRoute"
		for _, k := range good {
			if k == excluded {
				code = "Unheard" // what is good is told by an error that ends the search
			}
		}
		if excluded != "" && !strings.Contains(" "+strings.Join(known, " ")+" ", " "+excluded+" ") {
			code = "InvalidValue"
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"code": %q}`, code)
	}))
	defer server.Close()
	q := route.Query{Profile: byCar, Bounds: routertest.Bounds(t, "oneway", "0A BE")}
	q.Avoid = avoid
	_, err = newRouter(server.URL).Route(deadlinetest.Context(t, deadlinetest.DefaultLimit), q)
	return asked, err
}

func TestExclusionsAreGivenUpOneByOne(t *testing.T) {
	t.Parallel()
	singles := []string{"toll", "motorway", "ferry"}
	for _, c := range []struct {
		avoid       route.Avoid
		known, good []string
		want        string
		wantErr     error
	}{
		{route.Ferries, singles, []string{""}, "ferry|", route.ErrUnavailable},
		{route.Tolls, singles, []string{"toll"}, "toll", route.ErrUnavailable},
		{route.Tolls, singles, nil, "toll|", route.ErrNoRoute},
		{0, singles, nil, "", route.ErrNoRoute},
		{route.Tolls | route.Ferries, singles, nil, "toll,ferry", route.ErrUnsupported},
		{route.Tolls | route.Ferries, append(singles, "toll,ferry"), []string{"ferry"}, "toll,ferry|toll|ferry", route.ErrUnavailable},
		{route.Tolls | route.Motorways | route.Ferries, append(singles, "toll,motorway,ferry", "motorway,ferry"), []string{""},
			"toll,motorway,ferry|toll,motorway|toll,ferry|motorway,ferry|toll|motorway|ferry|", route.ErrUnavailable},
	} {
		asked, err := exclusionsAsked(t, c.avoid, c.known, c.good)
		if got := strings.Join(asked, "|"); got != c.want || !errors.Is(err, c.wantErr) {
			t.Errorf("avoiding %d where the server knows %v: asked %q, %v, want %q, %v", c.avoid, c.known, got, err, c.want, c.wantErr)
		}
	}
}
