package locations

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/loadclient"
	"lieudit/http/api"
)

// searchKind is a way to search, from the place that a site is at.
type searchKind struct {
	name  string
	query func(p syntheticAddress, n int) url.Values
}

func searchKinds() []searchKind {
	near := func(p syntheticAddress, radius string) url.Values {
		return url.Values{"lat": {fmt.Sprint(p.lat)}, "lon": {fmt.Sprint(p.lon)}, "radius": {radius}}
	}
	return []searchKind{
		{"text", func(p syntheticAddress, n int) url.Values {
			return url.Values{"q": {trades[n%len(trades)] + " " + p.address.City}}
		}},
		{"text as far as typed", func(p syntheticAddress, n int) url.Values { return url.Values{"q": {trades[n%len(trades)][:4]}} }},
		{"text with a slip", func(p syntheticAddress, n int) url.Values {
			t := trades[n%len(trades)]
			return url.Values{"q": {t[:2] + t[3:] + " " + p.address.City}}
		}},
		{"within 20 km", func(p syntheticAddress, _ int) url.Values { return near(p, "20000") }},
		{"text within 50 km", func(p syntheticAddress, n int) url.Values {
			v := near(p, "50000")
			v.Set("q", trades[n%len(trades)])
			return v
		}},
		{"tag", func(_ syntheticAddress, n int) url.Values { return url.Values{"tags": {"ouvert"}, "sort": {"nom"}} }},
		{"all by name", func(syntheticAddress, int) url.Values { return url.Values{} }},
	}
}

const concurrentFills = 8 // accounts that are filled at a time

// measureGroup fills accounts and searches them. Each account is searched once before anything is measured.
func (r *run) measureGroup(ctx context.Context, c AccountGroup) error {
	accounts := make([]account, c.Accounts)
	var done int
	var mu sync.Mutex
	var work errgroup.Group
	work.SetLimit(concurrentFills)
	for i := range accounts {
		work.Go(func() (err error) {
			if accounts[i], err = r.openAccount(ctx, fmt.Sprintf("crowd-%d-%d", c.Accounts, i)); err != nil {
				return err
			}
			if _, err = accounts[i].syncSites(ctx, r.makeSites(c.Sites, i*c.Sites, true)); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			r.Progress(fmt.Sprintf("%d accounts of %d sites: %d", c.Accounts, c.Sites, done))
			return accounts[i].send(ctx, http.MethodGet, "/search", nil, nil)
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	for _, k := range searchKinds() {
		r.Progress(fmt.Sprintf("%d accounts of %d sites: %s", c.Accounts, c.Sites, k.name))
		f, err := r.measureSearch(ctx, c, accounts, k)
		if err == nil {
			err = r.report(f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// measureSearch asks in one way, of one account after the other.
func (r *run) measureSearch(ctx context.Context, c AccountGroup, accounts []account, k searchKind) (Figure, error) {
	latencies := make([]loadclient.Latencies, r.Connections)
	var all errgroup.Group
	began := time.Now()
	for conn := range r.Connections {
		all.Go(func() error {
			client, err := loadclient.Dial(ctx, r.service.API)
			if err != nil {
				return err
			}
			defer client.Close()
			for n := conn; time.Since(began) < r.SearchDuration; n += r.Connections {
				p := r.addresses[n*7919%len(r.addresses)]
				request := loadclient.EncodeGet(r.service.API, api.Base+"/locations/search?"+k.query(p, n).Encode(), accounts[n%len(accounts)].key)
				start := time.Now()
				status, err := client.Send(request)
				if err == nil && status != http.StatusOK {
					err = fmt.Errorf("status %d", status)
				}
				if err != nil {
					return fmt.Errorf("search: %s: %w", k.name, err)
				}
				latencies[conn] = append(latencies[conn], time.Since(start))
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return Figure{}, err
	}
	var together loadclient.Latencies
	for _, t := range latencies {
		together = append(together, t...)
	}
	f := newFigure("search: "+k.name, c.Accounts, c.Sites, together)
	f.PerSecond = float64(len(together)) / time.Since(began).Seconds()
	return f, nil
}
