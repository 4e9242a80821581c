package census

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/lieudit/caller"
	"lieudit/http/server"
)

// kind is a way to search, from the place that a site is at.
type kind struct {
	name  string
	query func(p place, n int) url.Values
}

func kinds() []kind {
	near := func(p place, radius string) url.Values {
		return url.Values{"lat": {fmt.Sprint(p.lat)}, "lon": {fmt.Sprint(p.lon)}, "radius": {radius}}
	}
	return []kind{
		{"text", func(p place, n int) url.Values {
			return url.Values{"q": {trades[n%len(trades)] + " " + p.address.City}}
		}},
		{"text as far as typed", func(p place, n int) url.Values { return url.Values{"q": {trades[n%len(trades)][:4]}} }},
		{"text with a slip", func(p place, n int) url.Values {
			t := trades[n%len(trades)]
			return url.Values{"q": {t[:2] + t[3:] + " " + p.address.City}}
		}},
		{"within 20 km", func(p place, _ int) url.Values { return near(p, "20000") }},
		{"text within 50 km", func(p place, n int) url.Values {
			v := near(p, "50000")
			v.Set("q", trades[n%len(trades)])
			return v
		}},
		{"tag", func(_ place, n int) url.Values { return url.Values{"tags": {"ouvert"}, "sort": {"nom"}} }},
		{"all by name", func(place, int) url.Values { return url.Values{} }},
	}
}

const fillers = 8 // accounts that are filled at a time

// crowd fills accounts and searches them. Each account is searched once before anything is measured.
func (r *run) crowd(ctx context.Context, c Crowd) error {
	customers := make([]customer, c.Accounts)
	var done int
	var mu sync.Mutex
	var work errgroup.Group
	work.SetLimit(fillers)
	for i := range customers {
		work.Go(func() (err error) {
			if customers[i], err = r.open(ctx, fmt.Sprintf("crowd-%d-%d", c.Accounts, i)); err != nil {
				return err
			}
			if _, err = customers[i].sync(ctx, r.sites(c.Sites, i*c.Sites, true)); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			r.Progress(fmt.Sprintf("%d accounts of %d sites: %d", c.Accounts, c.Sites, done))
			return customers[i].do(ctx, http.MethodGet, "/search", nil, nil)
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	for _, k := range kinds() {
		r.Progress(fmt.Sprintf("%d accounts of %d sites: %s", c.Accounts, c.Sites, k.name))
		f, err := r.search(ctx, c, customers, k)
		if err == nil {
			err = r.tell(f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// search asks in one way, of one account after the other.
func (r *run) search(ctx context.Context, c Crowd, customers []customer, k kind) (Figure, error) {
	times := make([]caller.Times, r.Connections)
	var all errgroup.Group
	began := time.Now()
	for conn := range r.Connections {
		all.Go(func() error {
			asks, err := caller.Dial(ctx, r.service.API)
			if err != nil {
				return err
			}
			defer asks.Close()
			for n := conn; time.Since(began) < r.Turn; n += r.Connections {
				p := r.places[n*7919%len(r.places)]
				request := caller.Request(r.service.API, server.Base+"/locations/search?"+k.query(p, n).Encode(), customers[n%len(customers)].key)
				at := time.Now()
				status, err := asks.Ask(request)
				if err == nil && status != http.StatusOK {
					err = fmt.Errorf("status %d", status)
				}
				if err != nil {
					return fmt.Errorf("search: %s: %w", k.name, err)
				}
				times[conn] = append(times[conn], time.Since(at))
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return Figure{}, err
	}
	var together caller.Times
	for _, t := range times {
		together = append(together, t...)
	}
	f := figure("search: "+k.name, c.Accounts, c.Sites, together)
	f.PerSecond = float64(len(together)) / time.Since(began).Seconds()
	return f, nil
}
