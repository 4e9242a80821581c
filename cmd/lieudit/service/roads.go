package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/cmd/lieudit/metrics"
	"lieudit/cmd/lieudit/networks"
	"lieudit/cmd/lieudit/peers"
	"lieudit/cmd/lieudit/releases"
	"lieudit/eventstore/disk/dirlock"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/synthetic"
	"lieudit/queries/mappedfile"
	"lieudit/queries/route"
	"lieudit/queries/route/live"
	"lieudit/queries/route/network"
	"lieudit/queries/route/osrm"
	"lieudit/queries/route/valhalla"
	"lieudit/schemas/body"
)

// servedNetwork describes the own road network that is served.
type servedNetwork struct {
	network.Meta
	isDemo     bool // the service invented it for itself
	bytes      int64
	importedAt time.Time
}

// openRoads makes the router and serves the current road network. With a server of another engine the own network answers the requests
// that the server does not support. A network that cannot be served is not an error: the watcher reports it, and the rest works.
func (s *service) openRoads(ctx context.Context) error {
	s.router = live.New(newRouteServer(s.Router), string(s.Router.Engine), s.Log)
	folder := networks.FolderIn(s.Data)
	if err := folder.RemoveLeftovers(s.Now()); err != nil {
		s.Log.Warn("leavings of imports stay", "reason", err) // they only cost disk space
	}
	if s.wantsDemoNetwork(folder) {
		if err := s.addDemoNetwork(ctx, folder); err != nil {
			return fmt.Errorf("demo road network: %w", err)
		}
	}
	s.onClose(func() error {
		s.router.Swap(nil) // unmaps the network once the last question to it has been answered
		return nil
	})
	s.networkWatcher = releases.NewWatcher(folder, s.Log, s.serveNetwork, s.withdrawNetwork)
	s.networkWatcher.AnnounceWhile(func() bool { return s.servedNetwork.Load() != nil })
	s.networkWatcher.Load(ctx)
	return nil
}

// newRouteServer returns the router on servers of another engine, nil for the own engine. Its pauses are elapsed time.
func newRouteServer(setting RouterSetting) route.Router {
	switch setting.Engine {
	case OSRMRouter:
		return osrm.New(setting.Servers, time.Now)
	case ValhallaRouter:
		return valhalla.New(setting.Servers[route.Car], time.Now)
	}
	return nil
}

// wantsDemoNetwork reports whether to invent roads: for the own engine, if the addresses are invented and the folder never held a real
// network.
func (s *service) wantsDemoNetwork(folder networks.Folder) bool {
	current, err := folder.Current()
	return err == nil && current == "" && s.Demo && !s.router.HasServer() && folder.LastReal() == "" && s.servesDemoAddresses()
}

// addDemoNetwork invents the roads along the demo addresses. While an import holds the folder it does nothing: the import brings
// a network.
func (s *service) addDemoNetwork(ctx context.Context, folder networks.Folder) error {
	communes, err := commune.Load()
	if err != nil {
		return err
	}
	err = networks.AddDemo(ctx, folder, s.Now(), communes, synthetic.Rows(ctx, communes, DemoVintage()))
	if _, held := errors.AsType[*dirlock.HeldError](err); held {
		return nil
	}
	return err
}

// servesDemoAddresses reports whether the service answers from the addresses that it has invented for itself.
func (s *service) servesDemoAddresses() bool {
	e, ok := s.liveVintage.Acquire()
	if !ok {
		return false
	}
	defer e.Release()
	return e.Meta.Synthetic && e.Meta.Millesime == releases.DemoDate
}

// errDemoNetwork tells why the road network that the service invented is not served.
var errDemoNetwork = errors.New("the invented roads lead to no real address: lieudit roads import FILE.osm.pbf")

// serveNetwork serves a road network from now on, and owns it. It does not serve the service's invented network
// unless the served addresses are the service's invented ones.
func (s *service) serveNetwork(_ context.Context, n *network.Network) {
	served := servedNetwork{n.Meta, releases.IsDemo(n.Info().Name()), n.Size(), n.Modified()}
	s.servedNetwork.Store(&served)
	s.router.Swap(n)
	if served.isDemo && !s.servesDemoAddresses() {
		s.withdrawNetwork(errDemoNetwork)
	}
}

// withdrawNetwork stops serving the road network.
func (s *service) withdrawNetwork(reason error) {
	s.router.Withdraw(reason)
	s.servedNetwork.Store(nil)
}

// withdrawDemoNetwork stops serving a road network that the service invented for itself, once it answers from other
// addresses.
func (s *service) withdrawDemoNetwork() {
	if served := s.servedNetwork.Load(); served != nil && served.isDemo && !s.servesDemoAddresses() {
		s.withdrawNetwork(errDemoNetwork)
	}
}

// checkRoadsTimeout is how long readiness waits for a server of another engine, so that the parts after it have time left.
const checkRoadsTimeout = time.Second

// checkRoads returns nil while routes are found. Otherwise its error says how to repair it, also if no road network was ever
// imported and no server of another engine finds routes. A server whose last answer was a failure is a problem until it answers a
// request.
func (s *service) checkRoads(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkRoadsTimeout)
	defer cancel()
	if err := s.networkWatcher.Problem(); err != nil {
		return err
	}
	_, err := s.router.Network(ctx)
	if _, isWithdrawn := errors.AsType[*mappedfile.WithdrawnError](err); errors.Is(err, mappedfile.ErrNone) && !isWithdrawn {
		return errors.New("no road network is loaded: lieudit roads import FILE.osm.pbf")
	}
	if err == nil {
		return s.router.Problem()
	}
	return err
}

// describeRoads returns, for the text at start, what routes are found on.
func (s *service) describeRoads() string {
	if s.router.HasServer() {
		return s.Config.describeRouter() + "; beside it the own network: " + s.describeNetwork()
	}
	return s.describeNetwork()
}

// describeNetwork describes the served road network of the own engine.
func (s *service) describeNetwork() string {
	served := s.servedNetwork.Load()
	switch {
	case served == nil:
		if err := s.networkWatcher.Problem(); err != nil {
			return "NONE IS SERVED: " + err.Error()
		}
		return "none yet: lieudit roads import FILE.osm.pbf"
	case served.IsSynthetic:
		return fmt.Sprintf("%d SYNTHETIC roads: they exist nowhere; lieudit roads import FILE.osm.pbf loads real ones", served.Roads)
	}
	return fmt.Sprintf("%d, map of %s, %s", served.Roads, served.Date.UTC().Format(time.DateOnly), route.OSMAttribution)
}

// servedReleases reports the data that is served. It implements customerarea.Releases.
type servedReleases struct{ service *service }

// Vintages reports the vintage that is served.
func (r servedReleases) Vintages(ctx context.Context) (shown body.ServedVintages) {
	shown.Results, shown.Instances = []body.ServedVintage{}, r.instances(peers.VintageKind)
	if err := r.service.checkAddresses(ctx); err != nil {
		shown.Problem = err.Error()
	}
	e, ok := r.service.liveVintage.Acquire()
	if !ok {
		return shown
	}
	defer e.Release()
	v := e.Vintage()
	shown.Results = append(shown.Results, body.ServedVintage{
		Millesime: v.Millesime, Addresses: v.Addresses, Streets: v.Streets, Localities: v.Localities, Communes: v.Communes,
		IsSynthetic: v.Synthetic, Bytes: v.Size(), ImportedAt: v.Modified().UTC(),
	})
	return shown
}

// Networks reports the own road network and, if servers of another engine find routes, what they say about theirs.
func (r servedReleases) Networks(ctx context.Context) (shown body.ServedNetworks) {
	shown.Results, shown.Instances = []body.ServedNetwork{}, r.instances(peers.NetworkKind)
	if err := r.service.checkRoads(ctx); err != nil {
		shown.Problem = err.Error()
	}
	if n, err := r.service.router.ServerNetwork(ctx); err == nil {
		shown.Results = append(shown.Results, newServedNetwork(n))
	}
	if n, err := r.service.router.OwnNetwork(ctx); err == nil {
		own := newServedNetwork(n)
		if served := r.service.servedNetwork.Load(); served != nil {
			own.Bytes, own.ImportedAt = served.bytes, served.importedAt.UTC()
		}
		shown.Results = append(shown.Results, own)
	}
	return shown
}

// instances reports what each instance serves of a kind.
func (r servedReleases) instances(kind string) (shown []body.ServingInstance) {
	for _, i := range r.service.peers.Instances(kind) {
		shown = append(shown, body.ServingInstance{
			URL: i.URL, Host: i.Host, Program: i.Program, Date: i.Date, SHA256: i.Serves, IsCurrent: i.IsCurrent, IsThis: i.IsThis, Problem: i.Problem,
		})
	}
	return shown
}

// newServedNetwork makes the body about a network.
func newServedNetwork(n route.Network) body.ServedNetwork {
	shown := body.ServedNetwork{Engine: n.Engine, IsSynthetic: n.IsSynthetic, Attribution: n.Attribution, Modes: []string{}}
	for _, mode := range n.Modes {
		shown.Modes = append(shown.Modes, string(mode))
	}
	if !n.Date.IsZero() {
		shown.Date = n.Date.UTC().Format(time.DateOnly)
	}
	return shown
}

// registerRoadMetrics registers the own road network that is served, and its size: 0 if none is.
func (s *service) registerRoadMetrics() {
	metrics.Register(s.metrics, "lieudit_roads", func() float64 {
		if served := s.servedNetwork.Load(); served != nil {
			return float64(served.Roads)
		}
		return 0
	})
	metrics.RegisterRelease(s.metrics, "lieudit_road_network", func() (metrics.Release, bool) {
		served := s.servedNetwork.Load()
		if served == nil {
			return metrics.Release{}, false
		}
		return metrics.Release{Label: served.Date.UTC().Format(time.DateOnly), Date: served.Date, IsSynthetic: served.IsSynthetic}, true
	}, s.Now)
}
