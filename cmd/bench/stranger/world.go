package stranger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/lieudit/service"
	"lieudit/http/api"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/synthetic"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

const (
	apiBase         = api.Base
	referentialCode = "shops"
	referentialPath = "/locations/referentiels/" + referentialCode
	// webOrigin is the page that publishable keys belong to.
	webOrigin = "https://example.org"
)

// place is a house number of the synthetic addresses. The synthetic roads lead to it.
type place struct {
	line, postcode, city string
	lat, lon             float64
}

func (p place) address() string { return p.line + " " + p.postcode + " " + p.city }

// position returns the place as a bound of a route.
func (p place) position() string { return fmt.Sprintf("%.6f,%.6f", p.lon, p.lat) }

// readPlaces generates the house numbers that a new service generates too, in the order of their streets.
func readPlaces(ctx context.Context) (all []place, err error) {
	communes, err := commune.Load()
	if err != nil {
		return nil, err
	}
	for row, err := range synthetic.Rows(ctx, communes, service.DemoVintage()) {
		if err != nil {
			return nil, err
		}
		if row.Kind == ban.HouseNumber {
			all = append(all, place{strings.TrimSpace(fmt.Sprintf("%d%s %s", row.Numero, row.Rep, row.Voie)), row.CodePostal, row.Commune, row.Lat, row.Lon})
		}
	}
	return all, nil
}

// account is the stranger's account of one plan.
type account struct {
	plan             plan.Name
	key, publishable string
	revoked          string // a key that is revoked
}

// world holds what is prepared before the phases begin. Only renewDiscovery changes it, between turns.
type world struct {
	places    []place
	customers []customer // measured in all phases
	crowd     []customer // load the service in the second phase
	accounts  map[plan.Name]account
	// openDiscovery opens another account of the plan DISCOVERY, whose quota cannot be raised.
	openDiscovery func(context.Context) (account, error)
}

// place returns the n-th place. After the last one it begins again with the first.
func (w *world) place(n int) place { return w.places[n%len(w.places)] }

// renewDiscovery gives the stranger a DISCOVERY account with an unused quota.
func (w *world) renewDiscovery(ctx context.Context) error {
	a, err := w.openDiscovery(ctx)
	if err == nil {
		w.accounts[plan.Discovery] = a
	}
	return err
}

// attackedService is the attacked process with its data folder.
type attackedService struct {
	workDir harness.WorkDir
	current *harness.Instance
	opened  int // accounts, for their names
}

func newService(o Options) (*attackedService, error) {
	w, err := harness.NewWorkDir(o.Dir)
	if err != nil {
		return nil, err
	}
	return &attackedService{workDir: w.WithProgram(o.Program)}, nil
}

// start starts the process. It may be called again, and then restarts the process on the same data.
func (s *attackedService) start(ctx context.Context) (target, error) {
	if s.current != nil {
		s.current.Kill()
	}
	in, err := harness.StartInstance(ctx, s.workDir, "service", harness.AnyPort)
	if err != nil {
		return target{}, err
	}
	s.current = in
	if err := in.WaitReady(ctx); err != nil {
		return target{}, err
	}
	pid := in.PID()
	if _, err := readAnonymousMemory(pid); err != nil {
		return target{}, fmt.Errorf("the memory of the process cannot be read: %w", err)
	}
	return target{
		address: in.API, exited: in.Exited(), kill: in.Kill,
		anonymousMemory: func() (int64, error) { return readAnonymousMemory(pid) },
		processorTime:   func() (time.Duration, error) { return readProcessorTime(pid) },
	}, nil
}

// remove kills the process and removes its folder.
func (s *attackedService) remove() error {
	if s.current != nil {
		s.current.Kill()
	}
	return s.workDir.Remove()
}

// crowdAccounts is how many accounts the connections of the second phase use.
const crowdAccounts = 8

// openWorld opens the accounts of the customers and of the stranger, and writes their sites.
func (s *attackedService) openWorld(ctx context.Context, o Options) (*world, error) {
	w := &world{accounts: map[plan.Name]account{}, openDiscovery: func(ctx context.Context) (account, error) { return s.openStranger(ctx, plan.Discovery) }}
	var err error
	if w.places, err = readPlaces(ctx); err != nil {
		return nil, err
	}
	for n := range o.Customers + crowdAccounts {
		c, err := s.openCustomer(ctx, w, n)
		if err != nil {
			return nil, err
		}
		if n < o.Customers {
			w.customers = append(w.customers, c)
		} else {
			w.crowd = append(w.crowd, c)
		}
	}
	for _, p := range plan.All() {
		a, err := s.openStranger(ctx, p.Name)
		if err == nil && p.SiteCapacity > 0 {
			err = s.writeSites(ctx, a, w, min(o.Sites, p.SiteCapacity))
		}
		if err != nil {
			return nil, fmt.Errorf("stranger, %s: %w", p.Name, err)
		}
		w.accounts[p.Name] = a
	}
	admin, err := s.current.AdminClient()
	if err != nil {
		return nil, err
	}
	return w, admin.WaitCaughtUp(ctx)
}

// openCustomer opens the account of an honest customer, with its sites.
func (s *attackedService) openCustomer(ctx context.Context, w *world, n int) (customer, error) {
	admin, err := s.current.AdminClient()
	if err != nil {
		return customer{}, err
	}
	key, err := admin.OpenAccount(ctx, fmt.Sprintf("customer-%d", n), plan.Business, harness.UnlimitedQuota)
	if err != nil {
		return customer{}, err
	}
	rows := make([]string, honestSites)
	for i := range rows {
		p := w.place(n*honestSites + i)
		rows[i] = fmt.Sprintf(`{"external_id":"site-%d","nom":%q,"lat":%.6f,"lon":%.6f}`, i, siteName(i), p.lat, p.lon)
	}
	return customer{key.Token}, s.upsert(ctx, key.Token, rows)
}

// openStranger opens an account of a plan with the keys that the plan allows, and with the highest quota.
func (s *attackedService) openStranger(ctx context.Context, name plan.Name) (account, error) {
	admin, err := s.current.AdminClient()
	if err != nil {
		return account{}, err
	}
	p, _ := plan.Lookup(name)
	s.opened++
	id := fmt.Sprintf("stranger-%s-%d", strings.ToLower(string(name)), s.opened)
	key, err := admin.OpenAccount(ctx, id, name, p.MaxQuota)
	if err != nil {
		return account{}, err
	}
	a := account{plan: name, key: key.Token}
	revoked, err := admin.IssueKey(ctx, id, "revoked")
	if err != nil {
		return a, err
	}
	a.revoked = revoked.Token
	if _, err := admin.Post(ctx, adminclient.JoinPath("revoke", "accounts", id, "keys", revoked.ID), body.RevokeKey{Reason: "rotation"}); err != nil {
		return a, err
	}
	if p.MaxPublishableKeys > 0 {
		a.publishable, err = issuePublishableKey(ctx, admin, id)
	}
	return a, err
}

// issuePublishableKey issues a key for a web page.
func issuePublishableKey(ctx context.Context, admin harness.AdminClient, account string) (string, error) {
	raw, err := admin.Post(ctx, adminclient.JoinPath("", "accounts", account, "keys"),
		body.IssueKey{Kind: token.Publishable, Label: "page", Origins: []string{webOrigin}})
	var key body.Key
	if err == nil {
		err = json.Unmarshal(raw, &key)
	}
	return key.Token, err
}

// sitesPerRequest is how many large sites are written by one request: 16 MiB.
const sitesPerRequest = 1000

// writeSites writes n sites, each nearly as large as a site may be.
func (s *attackedService) writeSites(ctx context.Context, a account, w *world, n int) error {
	var rows []string
	for i := range n {
		rows = append(rows, largeSite(w.place(i*7), i))
		if len(rows) == sitesPerRequest || i == n-1 {
			if err := s.upsert(ctx, a.key, rows); err != nil {
				return err
			}
			rows = nil
		}
	}
	return nil
}

// upsert writes sites, in a referential that it creates if there is none.
func (s *attackedService) upsert(ctx context.Context, key string, rows []string) error {
	c, err := adminclient.NewAPI("http://"+s.current.API, key)
	if err != nil {
		return err
	}
	_, err = c.Post(ctx, "/locations/referentiels", body.OpenReferential{Code: referentialCode})
	if known, ok := errors.AsType[*adminclient.APIError](err); ok && known.Status == 409 {
		err = nil
	}
	if err == nil {
		_, err = c.WithoutTimeout().Post(ctx, referentialPath+"/sites:upsert", json.RawMessage(`{"sites":[`+strings.Join(rows, ",")+`]}`))
	}
	return err
}

// largeSite returns a site with nearly 16 KiB of proprietes, the most that is allowed, as a row of a sync. Its length depends only on
// the place.
func largeSite(p place, n int) string {
	properties := `{"texte":"` + strings.Repeat("abcdefghijklmnop", 1020) + `"}`
	return fmt.Sprintf(`{"external_id":"site-%08d","nom":"Boutique %08d","lat":%.6f,"lon":%.6f,"tags":["ouvert","parking"],"proprietes":%s}`, n, n, p.lat, p.lon, properties)
}
