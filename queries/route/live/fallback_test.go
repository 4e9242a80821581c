package live

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"lieudit/queries/route"
)

// namedRouter answers everything with its error and its name.
type namedRouter struct {
	name  string
	err   error
	modes []route.Mode
}

func (r namedRouter) Route(context.Context, route.Query) (route.Answer, error) {
	return route.Answer{Accesses: []route.Access{{Street: r.name}}}, r.err
}

func (r namedRouter) Matrix(context.Context, route.MatrixQuery) (route.Matrix, error) {
	return route.Matrix{OriginAccesses: []route.Access{{Street: r.name}}}, r.err
}

func (r namedRouter) Nearest(context.Context, route.NearestQuery) (route.Nearest, error) {
	return route.Nearest{Access: route.Access{Street: r.name}}, r.err
}

func (r namedRouter) Isochrone(context.Context, route.IsochroneQuery) (route.Isochrone, error) {
	return route.Isochrone{Access: route.Access{Street: r.name}}, r.err
}

func (r namedRouter) Network(context.Context) (route.Network, error) {
	return route.Network{Engine: r.name, Modes: r.modes}, r.err
}

// file stands for the file of a network.
type file struct{}

func (file) Guard(read func() error) error { return read() }
func (file) Damage() error                 { return nil }
func (file) Close() error                  { return nil }

// newPair returns a router with a server and an own network.
func newPair(server, own route.Router) *Router {
	r := New(server, "first", slog.New(slog.DiscardHandler))
	r.own.Swap(file{}, own)
	return r
}

// answers asks a router everything and returns who answered each time.
func answers(r route.Router) (names []string, errs []error) {
	a, err1 := r.Route(context.Background(), route.Query{})
	m, err2 := r.Matrix(context.Background(), route.MatrixQuery{})
	n, err3 := r.Nearest(context.Background(), route.NearestQuery{})
	i, err4 := r.Isochrone(context.Background(), route.IsochroneQuery{})
	return []string{a.Accesses[0].Street, m.OriginAccesses[0].Street, n.Access.Street, i.Access.Street}, []error{err1, err2, err3, err4}
}

func TestOnlyWhatTheServerDoesNotSupportGoesToTheOwnNetwork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first, second error
		want          string
		wantErr       error
	}{
		{nil, nil, "first", nil},
		{route.ErrUnsupported, nil, "second", nil},
		{route.ErrUnsupported, route.ErrNoRoute, "second", route.ErrNoRoute},
		{route.ErrUnsupported, route.ErrUnavailable, "first", route.ErrUnsupported},
		{route.ErrUnavailable, nil, "first", route.ErrUnavailable},
		{route.ErrNoRoute, nil, "first", route.ErrNoRoute},
		{context.Canceled, nil, "first", context.Canceled},
	} {
		names, errs := answers(newPair(namedRouter{name: "first", err: c.first}, namedRouter{name: "second", err: c.second}))
		for i := range names {
			if names[i] != c.want || !errors.Is(errs[i], c.wantErr) {
				t.Errorf("%v, then %v: question %d is answered by %s with %v, want %s with %v",
					c.first, c.second, i, names[i], errs[i], c.want, c.wantErr)
			}
		}
	}
}

func TestNetworkHasTheModesOfBoth(t *testing.T) {
	t.Parallel()
	car, all := []route.Mode{route.Car}, []route.Mode{route.Car, route.Foot, route.Bike}
	for _, c := range []struct {
		second error
		want   []route.Mode
	}{{nil, all}, {route.ErrUnavailable, car}} {
		n, err := newPair(namedRouter{name: "first", modes: car}, namedRouter{name: "second", modes: all, err: c.second}).Network(context.Background())
		if err != nil || n.Engine != "first" || !slices.Equal(n.Modes, c.want) {
			t.Errorf("got %+v, %v, want modes %v", n, err, c.want)
		}
	}
	_, err := newPair(namedRouter{err: route.ErrUnavailable}, namedRouter{}).Network(context.Background())
	if !errors.Is(err, route.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, route.ErrUnavailable)
	}
}
