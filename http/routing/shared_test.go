package routing

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/http/budget"
	"lieudit/queries/address/live"
	"lieudit/queries/locations/search"
	"lieudit/queries/route"
	"lieudit/queries/worker"
	"lieudit/schemas/body"
	sites "lieudit/schemas/locations"
	"lieudit/schemas/refusal"
)

// oneSite is an account's only site, and the search that finds it. Both record how many workers of a budget are in use meanwhile.
type oneSite struct {
	search.Engine
	workers *budget.Budget
	used    int64
}

func (o *oneSite) site() (s sites.Site) {
	o.used += o.workers.Status().Used
	lon, lat := 2.0, 48.0
	s.Lon, s.Lat = &lon, &lat
	return s
}

func (o *oneSite) FindSite(context.Context, string, string, string) (sites.Site, error) {
	return o.site(), nil
}

func (o *oneSite) Search(context.Context, search.Query) (search.Result, error) {
	return search.Result{Hits: []search.Hit{{Site: o.site()}}}, nil
}

// slowRouter takes a second for each isochrone, and has no other answers.
type slowRouter struct{ NoRouter }

func (slowRouter) Isochrone(ctx context.Context, _ route.IsochroneQuery) (route.Isochrone, error) {
	select {
	case <-ctx.Done():
		return route.Isochrone{}, ctx.Err()
	case <-time.After(time.Second):
		return route.Isochrone{Areas: make([]route.Area, 1)}, nil
	}
}

func newService(r route.Router, own *oneSite) *Service {
	return &Service{
		Router: r, Addresses: live.New(nil), Sites: own, Search: own, Large: budget.New(MaxLarge, MaxAccountLarge), Log: slog.New(slog.DiscardHandler),
	}
}

// at is a bound that is a position.
func at(lon, lat float64) body.Bound { return body.Bound{Lon: &lon, Lat: &lat} }

func TestNoWorkerIsKeptWhileRequestsAreReservedOrASiteIsRead(t *testing.T) {
	t.Parallel()
	workers := budget.New(1, 1)
	own := &oneSite{workers: workers}
	s := newService(NoRouter{}, own)
	c := Caller{Account: "a", ReserveMemory: anyMemory, Reserve: func(context.Context, int64) error {
		own.used += workers.Status().Used
		return nil
	}}
	site := body.Bound{Referential: "shops", ExternalID: "1"}
	for name, ask := range map[string]func(context.Context) (any, error){
		"tour of positions": func(ctx context.Context) (any, error) {
			return s.Optimize(ctx, c, body.OptimizeStops{Stops: []body.Bound{at(2, 48), at(2, 48.1)}})
		},
		"tour": func(ctx context.Context) (any, error) {
			return s.Optimize(ctx, c, body.OptimizeStops{Stops: []body.Bound{at(2, 48), site}})
		},
		"matrix": func(ctx context.Context) (any, error) {
			return s.Matrix(ctx, c, body.ComputeMatrix{Origins: []body.Bound{at(2, 48)}, Destinations: []body.Bound{site}})
		},
		"nearest of all sites": func(ctx context.Context) (any, error) {
			return s.Nearest(ctx, c, body.NearestBody{FindNearest: body.FindNearest{Origin: at(2, 48)}, Sites: &body.SiteFilter{}}.Request())
		},
	} {
		ctx, task := worker.WithTask(t.Context(), worker.Pools{Workers: workers, Searches: workers}, "a")
		if err := worker.Acquire(ctx); err != nil { // as if the bounds had been costly
			t.Fatal(err)
		}
		if _, err := ask(ctx); !errors.Is(err, refusal.RoutingUnavailable) {
			t.Errorf("%s: got %v, want that the router was asked", name, err)
		}
		task.Release()
		if own.used != 0 {
			t.Errorf("%s: a worker was in use during a wait", name)
		}
		own.used = 0
	}
}

func TestIsochronesWaitForTheirTurnByAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(slowRouter{}, nil)
		ask := func(ctx context.Context, account string) (err error) {
			_, err = s.Isochrone(ctx, Caller{Account: account, ReserveMemory: anyMemory}, body.ComputeIsochrone{Origin: at(2, 48), Costs: []int{60}})
			return err
		}
		for range 3 * MaxAccountLarge {
			go ask(t.Context(), "attacker")
		}
		synctest.Wait()
		if got := s.Large.Status(); got.Used != MaxAccountLarge || got.Waiting != 2*MaxAccountLarge {
			t.Errorf("%d at once and %d waiting, want %d and %d", got.Used, got.Waiting, MaxAccountLarge, 2*MaxAccountLarge)
		}
		began := time.Now()
		if err := ask(t.Context(), "honest"); err != nil || time.Since(began) != time.Second {
			t.Errorf("another account's took %v (%v), want a second", time.Since(began), err)
		}
		ctx, leave := context.WithCancel(t.Context())
		leave()
		if err := ask(ctx, "attacker"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v after the client left, want that it ends", err)
		}
		time.Sleep(time.Minute)
		if got := s.Large.Status(); got != (budget.Status{}) {
			t.Errorf("after all answers %+v", got)
		}
	})
}

func TestAnOverloadIsNoFailureOfTheRouter(t *testing.T) {
	t.Parallel()
	s := newService(NoRouter{}, nil)
	if _, err := s.toAnswer(t.Context(), Caller{}, budget.ErrOverloaded, subject{}); !errors.Is(err, budget.ErrOverloaded) {
		t.Errorf("got %v, want %v", err, budget.ErrOverloaded)
	}
}

func anyMemory(int64) error { return nil }
