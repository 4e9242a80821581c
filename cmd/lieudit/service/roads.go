package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/cmd/lieudit/networks"
	"lieudit/cmd/lieudit/releases"
	"lieudit/eventstore/dirlock"
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
	isDemo     bool // the service has invented it for itself
	bytes      int64
	importedAt time.Time
}

// openRoads makes the router. On the own engine it serves the current road network. One that cannot be served is no error: the
// watcher reports it, and the rest of the service works. An invented network is made only beside invented addresses, in a
// folder that never held a real one.
func (s *service) openRoads(ctx context.Context) error {
	switch s.Router.Engine {
	case OSRMRouter:
		s.router = osrm.New(s.Router.Servers, s.Now)
		return nil
	case ValhallaRouter:
		s.router = valhalla.New(s.Router.Servers[route.Car], s.Now)
		return nil
	}
	s.liveNetwork = &live.Network{}
	s.router = s.liveNetwork
	folder := networks.FolderIn(s.Data)
	if err := folder.RemoveLeftovers(s.Now()); err != nil {
		s.Log.Warn("leavings of imports stay", "reason", err) // they cost disk space, nothing else
	}
	current, err := folder.Current()
	if err == nil && current == "" && s.Demo && folder.LastReal() == "" && s.servesDemoAddresses() {
		if err := s.addDemoNetwork(ctx, folder); err != nil {
			return fmt.Errorf("demo road network: %w", err)
		}
	}
	s.onClose(func() error {
		s.liveNetwork.Swap(nil) // unmaps the network once the last question to it has been answered
		return nil
	})
	s.networkWatcher = releases.NewWatcher(folder, s.Log, s.serveNetwork, s.withdrawNetwork)
	s.networkWatcher.Load(ctx)
	return nil
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

// servesDemoAddresses says whether the service answers from the addresses that it has invented for itself.
func (s *service) servesDemoAddresses() bool {
	e, ok := s.liveVintage.Acquire()
	if !ok {
		return false
	}
	defer e.Release()
	return e.Meta.Synthetic && e.Meta.Millesime == releases.DemoDate
}

// errDemoNetwork says why the road network that the service has invented is not served.
var errDemoNetwork = errors.New("the invented roads lead to no real address: lieudit roads import FILE.osm.pbf")

// serveNetwork serves a road network from now on, and owns it. The one that the service has invented for itself is not served
// beside other addresses than those that it has invented too.
func (s *service) serveNetwork(_ context.Context, n *network.Network) {
	served := servedNetwork{n.Meta, releases.IsDemo(n.Info().Name()), n.Size(), n.Modified()}
	s.servedNetwork.Store(&served)
	s.liveNetwork.Swap(n)
	if served.isDemo && !s.servesDemoAddresses() {
		s.withdrawNetwork(errDemoNetwork)
	}
}

// withdrawNetwork stops serving the road network.
func (s *service) withdrawNetwork(reason error) {
	s.liveNetwork.Withdraw(reason)
	s.servedNetwork.Store(nil)
}

// withdrawDemoNetwork stops serving a road network that the service has invented for itself, once it answers from other
// addresses.
func (s *service) withdrawDemoNetwork() {
	if served := s.servedNetwork.Load(); served != nil && served.isDemo && !s.servesDemoAddresses() {
		s.withdrawNetwork(errDemoNetwork)
	}
}

// checkRoads returns nil while routes are found. Otherwise its error says how to repair it; where no road network was ever
// imported it says that, too.
func (s *service) checkRoads(ctx context.Context) error {
	if s.networkWatcher != nil {
		if err := s.networkWatcher.Problem(); err != nil {
			return err
		}
	}
	_, err := s.router.Network(ctx)
	if _, isWithdrawn := errors.AsType[*mappedfile.WithdrawnError](err); errors.Is(err, mappedfile.ErrNone) && !isWithdrawn {
		return errors.New("no road network is loaded: lieudit roads import FILE.osm.pbf")
	}
	return err
}

// describeRoads says in the text at start what routes are found on.
func (s *service) describeRoads() string {
	if s.networkWatcher == nil {
		return s.Config.describeRouter()
	}
	served := s.servedNetwork.Load()
	switch {
	case served == nil:
		if err := s.networkWatcher.Problem(); err != nil {
			return "NONE ARE SERVED: " + err.Error()
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
	shown.Results = []body.ServedVintage{}
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

// Networks reports the road network that is served, or what the server of another engine says about its own.
func (r servedReleases) Networks(ctx context.Context) (shown body.ServedNetworks) {
	shown.Results = []body.ServedNetwork{}
	if err := r.service.checkRoads(ctx); err != nil {
		shown.Problem = err.Error()
	}
	n, err := r.service.router.Network(ctx)
	if err != nil {
		return shown
	}
	served := body.ServedNetwork{Engine: n.Engine, IsSynthetic: n.IsSynthetic, Attribution: n.Attribution, Modes: []string{}}
	for _, mode := range n.Modes {
		served.Modes = append(served.Modes, string(mode))
	}
	if !n.Date.IsZero() {
		served.Date = n.Date.UTC().Format(time.DateOnly)
	}
	if own := r.service.servedNetwork.Load(); own != nil {
		served.Bytes, served.ImportedAt = own.bytes, own.importedAt.UTC()
	}
	shown.Results = append(shown.Results, served)
	return shown
}
