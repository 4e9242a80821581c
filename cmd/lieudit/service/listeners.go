package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"lieudit/cmd/lieudit/ops"
	"lieudit/http/api"
	"lieudit/http/customerarea"
	"lieudit/http/throttle"
	accountqueries "lieudit/queries/account"
	auditqueries "lieudit/queries/audit"
	locationsqueries "lieudit/queries/locations"
	usagequeries "lieudit/queries/usage"
	"lieudit/queries/usage/reconcile"
)

// openListeners builds the handlers of the three listeners, and opens the sockets of the customer area and of ops. A connection
// made before serve runs waits in the system's queue. serveAPI opens the socket of the API.
func (s *service) openListeners() (err error) {
	limits, err := s.limitConnections()
	if err != nil {
		return err
	}
	uploads, err := s.openUploads()
	if err != nil {
		return err
	}
	apiHandler := api.New(s.keyRing, api.NewRequestMeter(s.ledger, s.countingPolicy(), s.Log), s.liveVintage, s.router, api.Locations{
		Commands: s.locations, Queries: locationsqueries.New(s.registry), Search: s.newSearchEngine(), Alerts: s.siteAlerts,
		CursorSecret: s.cursorKey, LastChange: s.changes.LastChange, Wait: s.waitForLocations,
	}, api.Env{
		Limiter: s.waitLimiter, Throttle: s.newThrottle(), Clients: s.clients, Bodies: s.bodyBudget, Uploads: uploads, Prefixes: s.TokenPrefixes,
		Now: s.Now, Log: s.Log, Version: s.version,
	})
	s.api = s.newListener("API", s.Listen, limits.api, s.withMetrics("api", s.noteProxies(apiHandler)))
	usageReader := usagequeries.New(s.registry)
	areaHandler := customerarea.New(s.keyRing, customerarea.Accounts{
		Commands: s.accounts, Tokens: s.tokens, Queries: accountqueries.New(s.registry, s.Now), Audit: auditqueries.New(s.registry),
		Wait: s.newReadModelWait(accountCategory), WaitTokens: s.newReadModelWait(tokenCategory),
	}, customerarea.Usage{
		Meter: s.ledger, Queries: usageReader, Wait: s.waitForUsage, Reconciler: &reconcile.Reconciler{
			Log: s.logs.usage, Read: usageReader, WaitForUsage: s.waitForUsage, RunningInstances: s.registry.ActiveInstances,
		},
	}, customerarea.Maintenance{ReadModels: projectionAdmin{s.projector}, Repairs: s.repairs, Releases: servedReleases{s}, Upgrades: upgrades{s.deployment, s.registry}}, customerarea.Env{
		Limiter: s.waitLimiter, Bodies: s.bodyBudget, Prefixes: s.TokenPrefixes, Now: s.Now, Log: s.Log,
	})
	s.area = s.newListener("customer area", s.AreaListen, limits.area, s.withMetrics("area", areaHandler))
	s.ops = s.newListener("ops", s.OpsListen, limits.ops, ops.NewHandler(s.components(), s.metrics))
	s.registerConnectionMetrics()
	return errors.Join(s.area.open(), s.ops.open())
}

const (
	// maxUploads is how many files of clients may be on disk at once, each with a descriptor and at most csvupload.MaxFileBytes;
	// maxAccountUploads is how many of them may be of one account.
	maxUploads        = 16
	maxAccountUploads = maxUploads / 2
)

// openUploads makes the folder for files of clients, which is beside the data so that they are on a disk and not in memory. What a
// killed process left there is removed.
func (s *service) openUploads() (api.Uploads, error) {
	folder := filepath.Join(s.Data, uploadsFolder)
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700)); err != nil {
		return api.Uploads{}, fmt.Errorf("folder of uploads: %w", err)
	}
	return api.Uploads{Folder: folder, Budget: s.uploadBudget}, nil
}

// countingPolicy decides which answers are billed: in the customer's favour, unless CountToTheLetter is set.
func (s *service) countingPolicy() api.CountingPolicy {
	if s.CountToTheLetter {
		return api.CountAll
	}
	return api.CountingPolicy{}
}

// newThrottle limits publishable keys to 20 requests a second, in bursts of 100, from one client address. It allows
// everything where a proxy does so.
func (s *service) newThrottle() *throttle.Throttle {
	if s.Unthrottled {
		return &throttle.Throttle{}
	}
	return throttle.New(20, 100)
}

// noteProxies makes readiness tell of a proxy that is not trusted, where that matters to the throttle.
func (s *service) noteProxies(next http.Handler) http.Handler {
	if s.Unthrottled {
		return next
	}
	return s.clients.Handler(next)
}

const (
	// opsConnections is the cap of the ops listener: probes, a scraper and people.
	opsConnections = 64
	// minConnections is the smallest cap with which a listener is of use.
	minConnections = 8
	// minDescriptorReserve and maxDescriptorReserve bound the file descriptors reserved for what is opened later: the
	// log's next segments (two each), databases, vintages, connections to servers.
	minDescriptorReserve, maxDescriptorReserve = 96, 1024
)

// connectionLimits is how many connections each listener takes.
type connectionLimits struct{ api, area, ops int }

// limitConnections lowers the caps of the listeners to what the file descriptors of the process allow, so that idle
// connections never keep the log from opening a file. Where the number of descriptors is not known, the caps stay as
// configured. It must run after the log and the databases are open, since it counts their descriptors.
func (s *service) limitConnections() (connectionLimits, error) {
	wanted := cmp.Or(s.MaxConnections, DefaultMaxConnections)
	descriptors, known := maxDescriptors()
	if !known {
		return connectionLimits{wanted, wanted, opsConnections}, nil
	}
	limits, err := divideDescriptors(wanted, descriptors, countOpenDescriptors())
	if err == nil && limits.api < wanted {
		s.Log.Warn("fewer connections than asked for: file descriptors are few", "descriptors", descriptors, "connections", limits.api)
	}
	return limits, err
}

// countOpenDescriptors counts the open file descriptors of the process, those of the log and the databases among them.
// Where /proc does not list them it returns an estimate.
func countOpenDescriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return minDescriptorReserve
	}
	return len(open)
}

// divideDescriptors divides the descriptors that are neither open nor reserved among the listeners. The reserve is a quarter
// of all descriptors within its two bounds. The ops listener comes first, so that probes are answered. The API and the
// customer area get half of the rest each, at most wanted. Fewer than minConnections for any listener is an error.
func divideDescriptors(wanted, descriptors, open int) (connectionLimits, error) {
	free := descriptors - open - min(max(descriptors/4, minDescriptorReserve), maxDescriptorReserve)
	ops := min(opsConnections, free/8)
	each := min(wanted, (free-ops)/2)
	if min(ops, each) < minConnections {
		return connectionLimits{}, fmt.Errorf("%d file descriptors are too few: at least %d are needed (ulimit -n)",
			descriptors, open+max(descriptors/4, minDescriptorReserve)+8*minConnections)
	}
	return connectionLimits{each, each, ops}, nil
}

// checkConnections returns an error that names the listeners that are at their cap and have no idle connection to close,
// nil when there are none.
func (s *service) checkConnections(context.Context) error {
	var full []error
	for _, l := range []*listener{s.api, s.area} {
		if status := l.status(); status.Full {
			full = append(full, fmt.Errorf("%s: all %d connections are at work", l.name, status.Limit))
		}
	}
	return errors.Join(full...)
}
