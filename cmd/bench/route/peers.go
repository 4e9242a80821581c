package route

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"lieudit/cmd/bench/measure"
	"lieudit/queries/route"
	"lieudit/queries/route/osrm"
	"lieudit/queries/route/routerprocess"
	"lieudit/queries/route/routeserver"
	"lieudit/queries/route/valhalla"
)

const (
	startLimit  = 10 * time.Minute // a server reads a country first
	mostInTable = 1_000            // positions that OSRM accepts in a table: the default is below 100 × 100
)

// patience is how long a peer may take: a slow answer is measured, not refused.
var patience = routeserver.Timeouts{Route: time.Minute, Matrix: time.Minute}

// namedRouter is a router with its name in tables.
type namedRouter struct {
	name string
	route.Router
	isPeer bool // its errors are counted, and do not end the run
}

// peers are the servers measured along with our own engine, and those of them that this run started.
type peers struct {
	routers []namedRouter
	urls    map[string]string                // by name
	started map[string]*routerprocess.Server // by name
}

// openPeers registers the servers whose URLs are given. For the other engines it prepares the map in dir and starts a server, if their programs
// are given. Call stop even after an error.
func openPeers(ctx context.Context, dir string, o Options, out measure.Output) (p *peers, err error) {
	p = &peers{urls: map[string]string{}, started: map[string]*routerprocess.Server{}}
	prepareOSRM := func(ctx context.Context, o routerprocess.Options) (routerprocess.Prepared, error) {
		return routerprocess.PrepareOSRM(ctx, o, route.Car)
	}
	if o.OSRM, err = p.start(ctx, dir, "OSRM", o.OSRM, o, prepareOSRM, out); err != nil {
		return p, err
	}
	if o.Valhalla, err = p.start(ctx, dir, "Valhalla", o.Valhalla, o, routerprocess.PrepareValhalla, out); err != nil {
		return p, err
	}
	p.urls["OSRM"], p.urls["Valhalla"] = o.OSRM, o.Valhalla
	if o.OSRM != "" {
		r := osrm.New(map[route.Mode]string{route.Car: o.OSRM}, time.Now)
		r.SetTimeouts(patience)
		p.routers = append(p.routers, namedRouter{"OSRM", r, true})
	}
	if o.Valhalla != "" {
		r := valhalla.New(o.Valhalla, time.Now)
		r.SetTimeouts(patience)
		p.routers = append(p.routers, namedRouter{"Valhalla", r, true})
	}
	return p, nil
}

// start returns the URL of a server: the given one, or that of a new server on a map that it prepares, or "".
func (p *peers) start(ctx context.Context, dir, name, serverURL string, o Options,
	prepare func(context.Context, routerprocess.Options) (routerprocess.Prepared, error), out measure.Output) (string, error) {
	if serverURL != "" || o.Programs == "" {
		return serverURL, nil
	}
	out.Progress("import: "+name, 0, 0)
	folder := filepath.Join(dir, name)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", err
	}
	prepared, err := prepare(ctx, routerprocess.Options{
		Programs: o.Programs, Folder: folder, Map: o.File, Threads: runtime.NumCPU(), MaxTable: mostInTable,
	})
	if err != nil {
		return "", fmt.Errorf("prepare the map for %s: %w", name, err)
	}
	if err := out.Report(measure.Figure{
		Labels: []measure.Label{{Name: "what", Value: "import"}, {Name: "router", Value: name}},
		Value:  prepared.Duration.Seconds(), Unit: "s", Bytes: prepared.Bytes,
		Extra: map[string]float64{"peak MiB": float64(prepared.PeakMemory) / (1 << 20)},
	}); err != nil {
		return "", err
	}
	startCtx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	server, err := prepared.Serve(startCtx)
	if err != nil {
		return "", fmt.Errorf("start %s: %w", name, err)
	}
	p.started[name] = server
	return server.URL, nil
}

// pid returns the id of a server's process, 0 if this run did not start it.
func (p *peers) pid(name string) int {
	if s, ok := p.started[name]; ok {
		return s.PID()
	}
	return 0
}

// stop ends the servers that were started.
func (p *peers) stop() (err error) {
	for _, s := range p.started {
		err = errors.Join(err, s.Stop())
	}
	return err
}

// countError counts the error of a peer on one question and returns nil. It returns the errors that end the run: those of our own engine, and
// the end of ctx.
func (r namedRouter) countError(ctx context.Context, err error, count *int) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil || !r.isPeer {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	*count++
	return nil
}
