// Package locations measures the sites of customers over HTTP, as a customer sees them: how long a sync of a whole referential takes, how soon
// a write is found, and how fast sites are searched while many accounts have sites. Each answer is checked, so a fast wrong answer is an error
// and not a figure.
//
//	Run ──> harness.StartService ──> measureSyncs ──> measureFreshness ──> measureGroup for each of Groups
package locations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/measure"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/http/api"
	"lieudit/schemas/plan"
)

// Options configure Run. Only Node, Postgres and Meilisearch may be zero. Sites is at most 11,000, the most that a BUSINESS account may have.
type Options struct {
	Node           bool   // the log is on a node, otherwise in the service's own journal
	Postgres       string // of the read models; "" for SQLite
	Meilisearch    string // of the search; "" for the service's own
	Sites          int    // of a sync
	Rounds         int    // syncs of each kind, each in an account of its own
	Groups         []AccountGroup
	SearchDuration time.Duration // of each kind of search
	Connections    int
}

// AccountGroup is a number of accounts, each with the same number of sites.
type AccountGroup struct{ Accounts, Sites int }

// run is one run of the benchmark. Its single service holds the sites of all measurements, later ones in addition to earlier ones.
type run struct {
	Options
	measure.Output
	*harness.Service
	addresses []syntheticAddress
}

// Run measures everything on one service, with the processes' folders in dir, and removes these folders. What the service
// wrote to the Postgres and the Meilisearch of the options stays there.
func Run(ctx context.Context, dir string, o Options, out measure.Output) (err error) {
	r := &run{Options: o, Output: out}
	var flags []string
	if o.Postgres != "" {
		flags = append(flags, "--postgres", o.Postgres)
	}
	if o.Meilisearch != "" {
		flags = append(flags, "--meilisearch", o.Meilisearch)
	}
	if r.addresses, err = readSyntheticAddresses(ctx); err != nil {
		return err
	}
	if r.Service, err = harness.StartService(ctx, dir, o.Node, flags...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Remove()) }()
	last, err := r.measureSyncs(ctx)
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	if err := r.measureFreshness(ctx, last); err != nil {
		return fmt.Errorf("freshness: %w", err)
	}
	for _, g := range o.Groups {
		if err := r.measureGroup(ctx, g); err != nil {
			return fmt.Errorf("%d accounts of %d sites: %w", g.Accounts, g.Sites, err)
		}
	}
	return nil
}

// report reports a figure about a group of accounts.
func (r *run) report(what string, g AccountGroup, f measure.Figure) error {
	return r.Report(f.With(measure.Label{Name: "what", Value: what}, measure.Label{Name: "accounts", Value: g.Accounts}, measure.Label{Name: "sites", Value: g.Sites}))
}

// account is an account with a secret key and one referential, a list of sites that a sync replaces as a whole.
type account struct {
	*adminclient.Client
	key string
}

// referentialPath is the path of each account's only referential.
const referentialPath = "/locations/referentiels/shops"

// openAccount opens an account, issues its key and creates its referential, which is empty. Its client waits for an answer as long as the
// context allows, because a large sync may take long.
func (r *run) openAccount(ctx context.Context, id string) (account, error) {
	key, err := r.Admin.OpenAccount(ctx, id, plan.Business, harness.UnlimitedQuota)
	if err != nil {
		return account{}, err
	}
	c, err := adminclient.NewAPI("http://"+r.API, key.Token)
	if err != nil {
		return account{}, err
	}
	_, err = c.Post(ctx, "/locations/referentiels", map[string]string{"code": "shops"})
	return account{c.WithoutTimeout(), key.Token}, err
}

// syncResult is how many sites a sync created, updated and left unchanged, according to its answer.
type syncResult struct {
	Created   int `json:"crees"`
	Updated   int `json:"modifies"`
	Unchanged int `json:"inchanges"`
}

// syncSites sends a sync and returns how long its answer took. It returns an error for an answer other than want.
func (a account) syncSites(ctx context.Context, s syncRequest, want syncResult) (time.Duration, error) {
	began := time.Now()
	raw, err := a.Post(ctx, referentialPath+"/sites:sync", s)
	took := time.Since(began)
	var did syncResult
	if err == nil {
		err = json.Unmarshal(raw, &did)
	}
	if err == nil && did != want {
		err = fmt.Errorf("a sync of %d sites did %+v, want %+v", len(s.Rows), did, want)
	}
	return took, err
}

// measureSyncs measures syncs of whole referentials: the first one by address, which the service has to geocode, or with
// positions; the same sync again; and one in which every hundredth site has changed. Each round runs all of them on two new
// accounts. It returns the last account, for measureFreshness.
func (r *run) measureSyncs(ctx context.Context) (last account, err error) {
	syncs := []struct {
		name      string
		latencies *measure.Latencies
	}{{name: "first sync, by address"}, {name: "first sync, with positions"}, {name: "sync of the same"}, {name: "sync with 1 % changed"}}
	// Each kind of sync has one collection of latencies, over all rounds.
	for i := range syncs {
		syncs[i].latencies = measure.NewLatencies()
	}
	for round := range r.Rounds {
		for first, withPositions := range []bool{false, true} {
			r.Progress(fmt.Sprintf("sync, turn %d", round+1), 0, 0)
			if last, err = r.openAccount(ctx, fmt.Sprintf("sync-%d-%v", round, withPositions)); err != nil {
				return last, err
			}
			s := r.makeSites(r.Sites, 0, withPositions)
			changed := (r.Sites + 99) / 100 // every hundredth site, beginning with the first
			// sync is the step's index in syncs.
			for _, step := range []struct {
				sync int
				want syncResult
			}{{first, syncResult{Created: r.Sites}}, {2, syncResult{Unchanged: r.Sites}}, {3, syncResult{Updated: changed, Unchanged: r.Sites - changed}}} {
				for i := 0; step.sync == 3 && i < len(s.Rows); i += 100 {
					s.Rows[i].Phone = "04 66 11 11 11"
				}
				took, err := last.syncSites(ctx, s, step.want)
				if err != nil {
					return last, fmt.Errorf("%s: %w", syncs[step.sync].name, err)
				}
				syncs[step.sync].latencies.Record(took)
			}
		}
	}
	for _, s := range syncs {
		err = errors.Join(err, r.report(s.name, AccountGroup{1, r.Sites}, s.latencies.Figure()))
	}
	return last, err
}

// freshnessWrites is how many writes of one site are searched for, each until it is found.
const freshnessWrites = 100

// measureFreshness measures how long after its answer a write is found by the search. It first writes one more sync, which the search can only
// have indexed after all syncs before it. Then it writes single sites, one after another, and searches for each.
func (r *run) measureFreshness(ctx context.Context, a account) error {
	r.Progress("time until the syncs are found", 0, 0)
	synced, puts, found := measure.NewLatencies(), measure.NewLatencies(), measure.NewLatencies()
	s := r.makeSites(r.Sites, 0, true)
	changed := (r.Sites + 99) / 100 // of the last sync, restored to the result of makeSites
	// A name that no other site has marks this sync, so that a search finds nothing older.
	s.Rows[0].Name = "Clôture des synchronisations"
	if _, err := a.syncSites(ctx, s, syncResult{Updated: changed, Unchanged: r.Sites - changed}); err != nil {
		return err
	}
	took, err := a.waitUntilFound(ctx, s.Rows[0].Name)
	if err != nil {
		return err
	}
	synced.Record(took)
	r.Progress("time until a write is found", 0, 0)
	for n := range freshnessWrites {
		content := r.makeSites(1, n, true).Rows[0].Content
		content.Name = fmt.Sprintf("Fraîcheur %05d", 10000+n)
		began := time.Now()
		if _, err := a.Put(ctx, fmt.Sprintf("%s/sites/fresh-%d", referentialPath, n), content); err != nil {
			return err
		}
		puts.Record(time.Since(began))
		took, err := a.waitUntilFound(ctx, content.Name)
		if err != nil {
			return err
		}
		found.Record(took)
	}
	group := AccountGroup{1, r.Sites}
	return errors.Join(
		r.report("until the last sync is found", group, synced.Figure()),
		r.report("write of one site", group, puts.Figure()),
		r.report("until it is found, the search with it", group, found.Figure()),
	)
}

// searchTimeout is how long the search may take to find a write before the run fails.
const searchTimeout = 5 * time.Minute

// waitUntilFound searches for a name without a pause until the site of that name is the first result, and returns how long
// that took. So the time includes that of the last search.
func (a account) waitUntilFound(ctx context.Context, name string) (time.Duration, error) {
	began := time.Now()
	for time.Since(began) < searchTimeout {
		raw, err := a.Get(ctx, "/locations/search", url.Values{"q": {name}})
		var got struct {
			Results []struct {
				Name string `json:"nom"`
			} `json:"results"`
		}
		if err == nil {
			err = json.Unmarshal(raw, &got)
		}
		if err != nil || len(got.Results) > 0 && got.Results[0].Name == name {
			return time.Since(began), err
		}
	}
	return 0, fmt.Errorf("%s is not found %v after it was written", name, searchTimeout)
}

// searchKind is a kind of search. query returns the n-th search of the kind; p is the address of some site.
type searchKind struct {
	name  string
	query func(p syntheticAddress, n int) url.Values
}

// searchKinds returns the searches that a site locator on a web page sends. "text as far as typed" has the first four bytes of a word and needs
// a prefix index. "text with a slip" lacks the third byte of a word and needs tolerance for typing errors. Neither splits a letter of two
// bytes: the only one in shopTypes is the first of its word.
func searchKinds() []searchKind {
	shopType := func(n int) string { return shopTypes[n%len(shopTypes)] }
	near := func(p syntheticAddress, radius string) url.Values {
		return url.Values{"lat": {fmt.Sprint(p.lat)}, "lon": {fmt.Sprint(p.lon)}, "radius": {radius}}
	}
	return []searchKind{
		{"text", func(p syntheticAddress, n int) url.Values {
			return url.Values{"q": {shopType(n) + " " + p.address.City}}
		}},
		{"text as far as typed", func(_ syntheticAddress, n int) url.Values { return url.Values{"q": {shopType(n)[:4]}} }},
		{"text with a slip", func(p syntheticAddress, n int) url.Values {
			return url.Values{"q": {shopType(n)[:2] + shopType(n)[3:] + " " + p.address.City}}
		}},
		{"within 20 km", func(p syntheticAddress, _ int) url.Values { return near(p, "20000") }},
		{"text within 50 km", func(p syntheticAddress, n int) url.Values {
			v := near(p, "50000")
			v.Set("q", shopType(n))
			return v
		}},
		{"tag", func(syntheticAddress, int) url.Values { return url.Values{"tags": {"ouvert"}, "sort": {"nom"}} }},
		{"all by name", func(syntheticAddress, int) url.Values { return url.Values{} }},
	}
}

// concurrentFills is how many accounts are filled at a time. It shortens the preparation and does not affect the figures.
const concurrentFills = 8

// measureGroup measures the accounts of one group; groups do not share accounts. It fills the accounts and measures each kind of search. Each
// search uses the next account, so that a service with many accounts cannot answer from what the last search left in memory.
func (r *run) measureGroup(ctx context.Context, g AccountGroup) error {
	title := fmt.Sprintf("%d accounts of %d sites", g.Accounts, g.Sites)
	accounts, err := r.fillAccounts(ctx, g, title)
	if err != nil {
		return err
	}
	for _, k := range searchKinds() {
		r.Progress(title+": "+k.name, 0, 0)
		f, err := measure.Load{
			Address: r.API, Connections: r.Connections, Duration: r.SearchDuration, Accept: []int{http.StatusOK},
			Request: func(connection, n int) []byte {
				// From here on n counts the searches of all connections together.
				n = n*r.Connections + connection
				query := k.query(r.addresses[n*7919%len(r.addresses)], n).Encode() // 7919 is prime: this spreads the positions
				return measure.EncodeGet(r.API, api.Base+"/locations/search?"+query, accounts[n%len(accounts)].key)
			},
		}.Run(ctx)
		if err != nil {
			return fmt.Errorf("search: %s: %w", k.name, err)
		}
		if err := r.report("search: "+k.name, g, f); err != nil {
			return err
		}
	}
	return nil
}

// fillAccounts opens accounts, fills each with sites by one sync, and searches it once, so that no figure includes the work of an account's
// first search. Accounts have different sites as far as there are addresses.
func (r *run) fillAccounts(ctx context.Context, g AccountGroup, title string) ([]account, error) {
	accounts := make([]account, g.Accounts)
	var done atomic.Int64
	var work errgroup.Group
	work.SetLimit(concurrentFills)
	for i := range accounts {
		work.Go(func() (err error) {
			if accounts[i], err = r.openAccount(ctx, fmt.Sprintf("crowd-%d-%d", g.Accounts, i)); err != nil {
				return err
			}
			if _, err = accounts[i].syncSites(ctx, r.makeSites(g.Sites, i*g.Sites, true), syncResult{Created: g.Sites}); err != nil {
				return err
			}
			r.Progress(title, int(done.Add(1)), g.Accounts)
			_, err = accounts[i].Get(ctx, "/locations/search", nil)
			return err
		})
	}
	return accounts, work.Wait()
}
