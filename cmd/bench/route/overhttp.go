package route

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/measure"
	"lieudit/http/api"
	"lieudit/queries/route"
	"lieudit/schemas/geo"
	"lieudit/schemas/plan"
)

// httpServer is a server that is timed. All are asked by the same client, each over one kept connection, and their answers are read completely
// but not decoded.
type httpServer struct {
	name    string
	pid     int // 0: its processor time is unknown
	key     string
	address func(pair [2]geo.Point) string
	client  *http.Client

	latencies *measure.Latencies
	processor time.Duration
	bytes     int64
}

// pairsInTurn is how many pairs a server is asked before it is the next one's turn: few enough that all run under the same load, and enough to
// read the processor time of a turn.
const pairsInTurn = 20

// measureOverHTTP reports how long each server takes for the pairs, and how long the parts of our own take. Our service is a process of its own
// that checks keys and counts requests durably.
func measureOverHTTP(ctx context.Context, dir string, o PairOptions, p *peers, own route.Router, pairs [][2]geo.Point, out measure.Output) (err error) {
	if len(pairs) == 0 {
		return nil
	}
	out.Progress("start the own service", 0, 0)
	service, err := harness.StartService(ctx, dir, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.Remove()) }()
	key, err := importRoads(ctx, service, o.File)
	if err != nil {
		return err
	}
	servers := []*httpServer{
		newOwnServer("own, geometry and steps", service, key, "&steps=true"),
		newServer("OSRM, geometry and steps", p.pid("OSRM"), osrmAddress(p.urls["OSRM"])),
		newServer("Valhalla, geometry and steps", p.pid("Valhalla"), valhallaAddress(p.urls["Valhalla"])),
		newOwnServer("own, geometry", service, key, ""),
		newOwnServer("own, steps", service, key, "&steps=true&geometry=none"),
		newOwnServer("own, neither", service, key, "&geometry=none"),
		{name: "own, key and count alone", pid: service.PID(), key: key, client: newClient(), latencies: measure.NewLatencies(),
			address: func([2]geo.Point) string { return "http://" + service.API + api.Base + "/me" }},
	}
	if err := askInTurns(ctx, servers, pairs, out); err != nil {
		return err
	}
	areas := []*httpServer{
		newServer("own, isochrone 30 min", service.PID(), ownIsochrone("http://"+service.API)),
		newServer("Valhalla, isochrone 30 min", p.pid("Valhalla"), valhallaIsochrone(p.urls["Valhalla"])),
	}
	areas[0].key = key
	if err := askInTurns(ctx, areas, pairs[:min(mostAreas, len(pairs))], out); err != nil {
		return err
	}
	for _, s := range append(servers, areas...) {
		if err := out.Report(s.figure()); err != nil {
			return err
		}
	}
	return reportEngine(ctx, own, pairs, out)
}

// mostAreas limits the origins of areas: areas take much longer than routes.
const mostAreas = 60

func ownIsochrone(server string) func([2]geo.Point) string {
	return func(p [2]geo.Point) string {
		return fmt.Sprintf("%s%s/route/isochrone?origin=%.6f,%.6f&cost_type=duration&cost_values=1800", server, api.Base, p[0].Lon, p[0].Lat)
	}
}

func valhallaIsochrone(server string) func([2]geo.Point) string {
	return func(p [2]geo.Point) string {
		question := fmt.Sprintf(`{"locations":[{"lon":%.6f,"lat":%.6f}],"costing":"auto","contours":[{"time":30}],"polygons":true}`, p[0].Lon, p[0].Lat)
		return server + "/isochrone?json=" + url.QueryEscape(question)
	}
}

// importRoads imports the map into the data folder of a running service, opens an account, and waits until routes are answered.
func importRoads(ctx context.Context, s *harness.Service, file string) (key string, err error) {
	opened, err := s.Admin.OpenAccount(ctx, "pairs", plan.Business, harness.UnlimitedQuota)
	if err != nil {
		return "", err
	}
	imported, err := harness.StartProcess(s.WorkDir, "import", harness.LieuditCommand, "roads", "import", "--data", s.DataDir, file)
	if err != nil {
		return "", err
	}
	select {
	case <-imported.Exited():
	case <-ctx.Done():
		imported.Kill()
		return "", ctx.Err()
	}
	if err := imported.Stop(); err != nil {
		return "", fmt.Errorf("roads import: %w", err)
	}
	client := newClient()
	return opened.Token, harness.Retry(ctx, time.Minute, 50*time.Millisecond, func() error {
		_, err := get(ctx, client, "http://"+s.API+api.Base+"/route/nearest?origin=0,0&destinations=0,0", opened.Token, http.StatusOK, http.StatusNotFound)
		return err
	})
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1, DisableCompression: true}}
}

func newServer(name string, pid int, address func([2]geo.Point) string) *httpServer {
	return &httpServer{name: name, pid: pid, address: address, client: newClient(), latencies: measure.NewLatencies()}
}

func newOwnServer(name string, s *harness.Service, key, options string) *httpServer {
	own := newServer(name, s.PID(), func(p [2]geo.Point) string {
		return fmt.Sprintf("http://%s%s/route/compute?origin=%.6f,%.6f&destination=%.6f,%.6f%s", s.API, api.Base, p[0].Lon, p[0].Lat, p[1].Lon, p[1].Lat, options)
	})
	own.key = key
	return own
}

func osrmAddress(server string) func([2]geo.Point) string {
	return func(p [2]geo.Point) string {
		return fmt.Sprintf("%s/route/v1/driving/%.6f,%.6f;%.6f,%.6f?overview=full&geometries=geojson&steps=true", server, p[0].Lon, p[0].Lat, p[1].Lon, p[1].Lat)
	}
}

func valhallaAddress(server string) func([2]geo.Point) string {
	return func(p [2]geo.Point) string {
		question := fmt.Sprintf(`{"locations":[{"lon":%.6f,"lat":%.6f},{"lon":%.6f,"lat":%.6f}],"costing":"auto","language":"fr-FR"}`,
			p[0].Lon, p[0].Lat, p[1].Lon, p[1].Lat)
		return server + "/route?json=" + url.QueryEscape(question)
	}
}

// askInTurns asks each server about all pairs, some at a time. The first pairs are asked once before, so that no server is timed while it reads
// its files.
func askInTurns(ctx context.Context, servers []*httpServer, pairs [][2]geo.Point, out measure.Output) error {
	for _, s := range servers {
		for _, p := range pairs[:min(pairsInTurn, len(pairs))] {
			if _, err := s.ask(ctx, p); err != nil {
				return err
			}
		}
	}
	for first := 0; first < len(pairs); first += pairsInTurn {
		out.Progress("times over HTTP", first, len(pairs))
		for _, s := range servers {
			if err := s.takeTurn(ctx, pairs[first:min(first+pairsInTurn, len(pairs))]); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeTurn times some questions.
func (s *httpServer) takeTurn(ctx context.Context, pairs [][2]geo.Point) error {
	before := measure.ProcessorTimeOf(s.pid)
	for _, p := range pairs {
		began := time.Now()
		n, err := s.ask(ctx, p)
		if err != nil {
			return err
		}
		s.latencies.Record(time.Since(began))
		s.bytes += n
	}
	s.processor += measure.ProcessorTimeOf(s.pid) - before
	return nil
}

// ask asks about one pair and returns the size of the answer.
func (s *httpServer) ask(ctx context.Context, pair [2]geo.Point) (int64, error) {
	n, err := get(ctx, s.client, s.address(pair), s.key, http.StatusOK)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	return n, nil
}

// get reads an answer completely. OSRM closes a kept connection now and then; net/http then retries.
func get(ctx context.Context, client *http.Client, address, key string, accept ...int) (size int64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var text strings.Builder
	for _, status := range accept {
		if response.StatusCode == status {
			return io.Copy(io.Discard, response.Body)
		}
	}
	_, err = io.CopyN(&text, response.Body, 200)
	if err == io.EOF {
		err = nil
	}
	return 0, errors.Join(fmt.Errorf("%s is answered %s: %s", address, response.Status, text.String()), err)
}

// figure returns the latencies, the processor time and the size of an answer.
func (s *httpServer) figure() measure.Figure {
	f := s.latencies.Figure(measure.Label{Name: "over HTTP", Value: s.name})
	f.Extra = map[string]float64{"KB an answer": float64(s.bytes) / 1e3 / float64(f.Samples)}
	if s.pid != 0 {
		f.Extra["processor ms"] = s.processor.Seconds() * 1e3 / float64(f.Samples)
	}
	return f
}

// reportEngine reports how long the same questions take in the engine alone, in this process.
func reportEngine(ctx context.Context, own route.Router, pairs [][2]geo.Point, out measure.Output) error {
	if err := reportEngineAreas(ctx, own, pairs[:min(mostAreas, len(pairs))], out); err != nil {
		return err
	}
	for _, q := range []struct {
		name            string
		geometry, steps bool
	}{{"geometry and steps", true, true}, {"geometry", true, false}, {"steps", false, true}, {"neither: snaps, search, unpacking", false, false}} {
		latencies := measure.NewLatencies()
		before := measure.ProcessorTime()
		for _, p := range pairs {
			query := route.Query{Profile: car, Bounds: []route.Bound{{Point: p[0]}, {Point: p[1]}}, Geometry: q.geometry, Steps: q.steps}
			began := time.Now()
			if _, err := own.Route(ctx, query); err != nil {
				return err
			}
			latencies.Record(time.Since(began))
		}
		f := latencies.Figure(measure.Label{Name: "in the engine", Value: q.name})
		f.Extra = map[string]float64{"processor ms": (measure.ProcessorTime() - before).Seconds() * 1e3 / float64(len(pairs))}
		if err := out.Report(f); err != nil {
			return err
		}
	}
	return nil
}

// reportEngineAreas reports how long isochrones take in the engine alone.
func reportEngineAreas(ctx context.Context, own route.Router, pairs [][2]geo.Point, out measure.Output) error {
	latencies := measure.NewLatencies()
	before := measure.ProcessorTime()
	for _, p := range pairs {
		query := route.IsochroneQuery{Profile: car, Center: route.Bound{Point: p[0]}, Cost: route.ByDuration, Limits: []float64{1800}}
		began := time.Now()
		if _, err := own.Isochrone(ctx, query); err != nil {
			return err
		}
		latencies.Record(time.Since(began))
	}
	f := latencies.Figure(measure.Label{Name: "in the engine", Value: "isochrone 30 min"})
	f.Extra = map[string]float64{"processor ms": (measure.ProcessorTime() - before).Seconds() * 1e3 / float64(len(pairs))}
	return out.Report(f)
}
