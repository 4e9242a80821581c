package routertest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/queries/route"
)

// FolderVariable is the environment variable with the folder of the programs of OSRM and Valhalla: it holds osrm/bin,
// osrm/share/profiles and valhalla/bin, as the wheels of osrm-bindings and pyvalhalla on PyPI do.
const FolderVariable = "LIEUDIT_TEST_ROUTERS"

const (
	prepareLimit = 2 * time.Minute
	startLimit   = time.Minute
	startTries   = 3 // another program may take the free port that was found
)

// profileFiles are OSRM's own profiles.
var profileFiles = map[route.Mode]string{route.Car: "car.lua", route.Foot: "foot.lua", route.Bike: "bicycle.lua"}

// StartOSRM prepares a PBF for a mode and serves it until the test ends. It returns the server's URL.
func StartOSRM(t testing.TB, pbf string, mode route.Mode) string {
	t.Helper()
	programs := findPrograms(t, "osrm")
	folder := t.TempDir()
	network := filepath.Join(folder, "net.osrm")
	profile := filepath.Join(programs, "share", "profiles", profileFiles[mode])
	bin := filepath.Join(programs, "bin")
	// A component is small below so many edges, and is left for a larger one nearby. The default, 1,000, is more than a test has.
	runProgram(t, filepath.Join(bin, "osrm-extract"),
		"-p", profile, "--data_version", "osmosis", "--small-component-size", "20", "-o", network, pbf)
	runProgram(t, filepath.Join(bin, "osrm-partition"), network)
	runProgram(t, filepath.Join(bin, "osrm-customize"), network)
	return startServer(t, func(port string) *exec.Cmd {
		return exec.Command(filepath.Join(bin, "osrm-routed"), "-i", "127.0.0.1", "-p", port, "-t", "2", "-a", "mld", network)
	}, "/nearest/v1/driving/0,0")
}

// findPrograms returns the folder of an engine's programs. A test without it is skipped on a laptop and fails under cmd/check.
func findPrograms(t testing.TB, engine string) string {
	t.Helper()
	folder := filepath.Join(os.Getenv(FolderVariable), engine)
	_, err := os.Stat(filepath.Join(folder, "bin"))
	switch {
	case os.Getenv(FolderVariable) != "" && err == nil:
		return folder
	case os.Getenv("LIEUDIT_CHECK") == "1":
		t.Fatalf("no programs of %s: %s names no folder that holds them (%v)", engine, FolderVariable, err)
	}
	t.Skipf("no programs of %s: go run ./cmd/check installs them; "+
		"or unzip the wheels osrm-bindings and pyvalhalla of PyPI into one folder and name it in %s", engine, FolderVariable)
	return ""
}

// runProgram runs a program to its end.
func runProgram(t testing.TB, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(deadlinetest.Context(t, prepareLimit), program, args...)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(program), err, output)
	}
}

// startServer starts a server on a free port, waits until it answers at a path, and ends it with the test.
func startServer(t testing.TB, command func(port string) *exec.Cmd, path string) string {
	t.Helper()
	var output bytes.Buffer
	for range startTries {
		port := freePort(t)
		cmd := command(port)
		output.Reset()
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			cmd.Wait() // its error is that it was killed
			close(ended)
		}()
		t.Cleanup(func() {
			cmd.Process.Kill() // it fails only where the server has ended
			<-ended
		})
		if serverURL := "http://127.0.0.1:" + port; waitUntilServing(t, serverURL+path, ended) {
			return serverURL
		}
	}
	t.Fatalf("the server ends as soon as it starts:\n%s", output.String())
	return ""
}

// freePort returns a port that no program listens on now.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// waitUntilServing waits until a server answers with JSON, or has ended.
func waitUntilServing(t testing.TB, address string, ended <-chan struct{}) (isServing bool) {
	t.Helper()
	ctx := deadlinetest.Context(t, startLimit)
	deadlinetest.WaitUntil(t, startLimit, "the server answers", func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		isServing = answersJSON(ctx, address)
		return isServing
	})
	return isServing
}

func answersJSON(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	first := make([]byte, 1)
	_, err = io.ReadFull(response.Body, first)
	return err == nil && first[0] == '{'
}

// valhallaConfig is the least configuration that valhalla_build_tiles and valhalla_service take. The server's parts talk over sockets
// in its folder, so that several can run; the paths of sockets have at most 107 bytes. Where borders are wanted and there are none,
// Valhalla drives on the left.
const valhallaConfig = `{
  "mjolnir": {"tile_dir": "%[1]s/tiles", "concurrency": 1, "data_processing": {"use_admin_db": false}},
  "loki": {"actions": ["locate", "route", "sources_to_targets", "isochrone", "status"], "use_connectivity": true,
    "service_defaults": {"radius": 0, "minimum_reachability": 50, "search_cutoff": 35000, "node_snap_tolerance": 5,
      "street_side_tolerance": 5, "street_side_max_distance": 1000, "heading_tolerance": 60,
      "mvt_min_zoom_road_class": [7, 7, 8, 11, 11, 12, 13, 14], "mvt_cache_min_zoom": 11},
    "service": {"proxy": "ipc://%[1]s/loki"}},
  "thor": {"service": {"proxy": "ipc://%[1]s/thor"}},
  "odin": {"service": {"proxy": "ipc://%[1]s/odin"}},
  "meili": {"default": {"breakage_distance": 2000}},
  "httpd": {"service": {"listen": "tcp://127.0.0.1:%[2]s", "loopback": "ipc://%[1]s/loopback", "interrupt": "ipc://%[1]s/interrupt",
    "timeout_seconds": -1, "drain_seconds": 1, "shutdown_seconds": 1}},
  "service_limits": {
    "auto": {"max_distance": 5000000.0, "max_locations": 20, "max_matrix_distance": 400000.0, "max_matrix_location_pairs": 2500},
    "bicycle": {"max_distance": 500000.0, "max_locations": 50, "max_matrix_distance": 200000.0, "max_matrix_location_pairs": 2500},
    "pedestrian": {"max_distance": 250000.0, "max_locations": 50, "max_matrix_distance": 200000.0, "max_matrix_location_pairs": 2500},
    "isochrone": {"max_contours": 4, "max_time_contour": 120, "max_distance": 25000.0, "max_locations": 1, "max_distance_contour": 200},
    "skadi": {"max_shape": 750000, "min_resample": 10.0},
    "trace": {"max_distance": 200000.0, "max_gps_accuracy": 100.0, "max_search_radius": 100.0, "max_shape": 16000, "max_alternates": 3,
      "max_alternates_shape": 100},
    "max_exclude_locations": 50, "max_reachability": 100, "max_radius": 200, "max_alternates": 2, "max_exclude_polygons_length": 10000,
    "min_linear_cost_factor": 1}
}`

// StartValhalla prepares a PBF and serves it until the test ends. It returns the server's URL.
func StartValhalla(t testing.TB, pbf string) string {
	t.Helper()
	bin := filepath.Join(findPrograms(t, "valhalla"), "bin")
	folder, err := os.MkdirTemp("", "valhalla") // the names of a test's own folders are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	configFor := func(port string) string {
		path := filepath.Join(folder, "config.json")
		if err := os.WriteFile(path, fmt.Appendf(nil, valhallaConfig, folder, port), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	runProgram(t, filepath.Join(bin, "valhalla_build_tiles"), "-c", configFor("0"), pbf)
	return startServer(t, func(port string) *exec.Cmd {
		return exec.Command(filepath.Join(bin, "valhalla_service"), configFor(port), "2")
	}, "/status")
}
