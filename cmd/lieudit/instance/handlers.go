package instance

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"lieudit/cmd/lieudit/guide"
	"lieudit/cmd/lieudit/metrics"
	"lieudit/http/api"
	"lieudit/http/customerarea"
	"lieudit/http/pages"
	guidepages "lieudit/http/pages/guide"
	"lieudit/http/pages/page"
	"lieudit/http/throttle"
	accountqueries "lieudit/queries/account"
	auditqueries "lieudit/queries/audit"
	locationsqueries "lieudit/queries/locations"
	usagequeries "lieudit/queries/usage"
	"lieudit/queries/usage/reconcile"
)

// handlers answer requests. They need Work to run; without it their answers say what is missing.
type handlers struct{ api, area http.Handler }

// API returns the handler of the API, under /services/v1, and Area that of the customer area, under /customer-area/v1.
func (i *Instance) API() http.Handler  { return i.handlers.api }
func (i *Instance) Area() http.Handler { return i.handlers.area }

// buildHandlers connects the handlers with the parts.
func (i *Instance) buildHandlers() error {
	uploads, err := i.openUploads()
	if err != nil {
		return err
	}
	apiHandler := api.New(i.keyRing, i.usage, i.Vintage, i.Router, api.Locations{
		Commands: i.locations, Queries: locationsqueries.New(i.Registry), Search: i.newSearchEngine(), Alerts: i.SiteAlerts,
		CursorSecret: i.cursorKey, LastChange: i.changes.LastChange, Wait: i.waitForLocations, AwaitOwn: i.awaitOwnLocations,
	}, api.Env{
		Limiter: i.waitLimiter, Throttle: i.newThrottle(), Clients: i.clients, Bodies: i.bodyBudget, Answers: i.answerBudget, Lists: i.lists, Workers: i.workers, Searches: api.NewSearches(), Uploads: uploads, Prefixes: i.TokenPrefixes,
		Now: i.Now, Log: i.Log, Counting: i.countingPolicy(), Version: i.Version,
	})
	usageReader := usagequeries.New(i.Registry)
	area := customerarea.New(i.keyRing, customerarea.Accounts{
		Commands: i.accounts, Tokens: i.tokens, Queries: accountqueries.New(i.Registry, i.Now), Audit: auditqueries.New(i.Registry),
		Wait: i.newReadModelWait(accountCategory), WaitTokens: i.newReadModelWait(tokenCategory),
	}, customerarea.Usage{
		Meter: i.usage, Queries: usageReader, Counts: &usagequeries.CountReader{Log: i.Usage, Codec: i.codec, Read: usageReader}, Wait: i.waitForUsage, Reconciler: &reconcile.Reconciler{
			Log: i.Usage, Read: usageReader, WaitForUsage: i.waitForUsage, RunningInstances: i.Registry.ActiveInstances,
		},
	}, customerarea.Maintenance{ReadModels: projectionAdmin{i.projector}, Repairs: i.repairs, Releases: i.Releases, Readiness: i.Readiness, Upgrades: upgrades{i.deployment, i.Registry}}, customerarea.Env{
		Limiter: i.waitLimiter, Bodies: i.bodyBudget, Answers: i.answerBudget, Lists: i.lists, Prefixes: i.TokenPrefixes, Now: i.Now, Log: i.Log,
		Clients: i.clients, Logins: throttle.New(loginInterval, loginBurst),
		Address: customerarea.Address{URL: i.AreaURL, Log: func() uuid.UUID { return i.keyRing.Checkpoint().Log }},
	})
	answers := metrics.NewHTTP(i.Metrics)
	countedAPI := answers.Handler("api", apiHandler)
	site, err := i.newPages(area, countedAPI)
	if err != nil {
		return err
	}
	i.handlers = handlers{api: i.noteProxies(countedAPI), area: answers.Handler("area", i.clients.Handler(routeArea(area, site)))}
	return nil
}

// Of one address, failed attempts to open a session are allowed five times a minute, and ten at once.
const (
	loginInterval = time.Minute / 5
	loginBurst    = 10
)

// newPages returns the web pages. They send requests that are tried to the API, and show the guide of the command line.
func (i *Instance) newPages(area *customerarea.Area, api http.Handler) (http.Handler, error) {
	found, err := guide.Chapters()
	if err != nil {
		return nil, err
	}
	var chapters []guidepages.Chapter
	for _, c := range found {
		chapters = append(chapters, guidepages.Chapter(c))
	}
	env := page.Env{URL: i.AreaURL, API: i.APIURL, APIHandler: api, Now: i.Now, Log: i.Log, Version: i.Version, IsStopping: i.IsStopping, IsInvented: i.servesInventedAddresses}
	return pages.New(area, env, chapters), nil
}

// servesInventedAddresses reports whether the served vintage was generated: it has none of the streets that exist.
func (i *Instance) servesInventedAddresses() bool {
	e, ok := i.Vintage.Acquire()
	if !ok {
		return false
	}
	defer e.Release()
	return e.Meta.Synthetic
}

// routeArea returns the handler of the customer area's listener: its operations as JSON, and everywhere else the web pages.
func routeArea(area, site http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; path == customerarea.Base || strings.HasPrefix(path, customerarea.Base+"/") {
			area.ServeHTTP(w, r)
			return
		}
		site.ServeHTTP(w, r)
	})
}

const (
	// maxUploads is how many files of clients may be on disk at once, each with a descriptor and at most csvupload.MaxFileBytes;
	// maxAccountUploads is how many of them may be of one account.
	maxUploads        = 16
	maxAccountUploads = maxUploads / 2
)

// openUploads makes the folder for files of clients. It is next to the data, so that the files are on a disk and not in memory. What a
// killed process left there is removed.
func (i *Instance) openUploads() (api.Uploads, error) {
	folder := filepath.Join(i.Folder, uploadsFolder)
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700)); err != nil {
		return api.Uploads{}, fmt.Errorf("folder of uploads: %w", err)
	}
	return api.Uploads{Folder: folder, Budget: i.uploadBudget}, nil
}

// countingPolicy decides which answers are billed: in the customer's favour, unless StrictCounting is set.
func (i *Instance) countingPolicy() api.CountingPolicy {
	if i.StrictCounting {
		return api.CountAll
	}
	return api.CountingPolicy{}
}

// newThrottle limits publishable keys to 20 requests a second, in bursts of 100, from one client address. It allows
// everything if a proxy throttles.
func (i *Instance) newThrottle() *throttle.Throttle {
	if i.Unthrottled {
		return &throttle.Throttle{}
	}
	return throttle.New(time.Second/20, 100)
}

// noteProxies makes readiness report a proxy that is not trusted, if that matters to the throttle.
func (i *Instance) noteProxies(next http.Handler) http.Handler {
	if i.Unthrottled {
		return next
	}
	return i.clients.Handler(next)
}
