package routerprocess

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// valhallaConfig is the minimal configuration of valhalla_build_tiles and valhalla_service: a folder for sockets, a port, the
// folder of the tiles, and threads. The server's parts talk over sockets in that folder, so that several servers can run. If the
// configuration asks for borders that are missing, Valhalla drives on the left.
const valhallaConfig = `{
  "mjolnir": {"tile_dir": %[3]q, "concurrency": %[4]d, "data_processing": {"use_admin_db": false}},
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

// PrepareValhalla prepares a map for all modes.
func PrepareValhalla(ctx context.Context, o Options) (p Prepared, err error) {
	if p, err = newPrepared(&o, Valhalla); err != nil {
		return p, err
	}
	bin := filepath.Join(o.Programs, Valhalla, "bin")
	tiles := filepath.Join(o.Folder, "tiles")
	writeConfig := func(folder, port string) (string, error) {
		path := filepath.Join(folder, "config.json")
		return path, os.WriteFile(path, fmt.Appendf(nil, valhallaConfig, folder, port, tiles, o.Threads), 0o600)
	}
	config, err := writeConfig(o.Folder, "0")
	if err != nil {
		return p, err
	}
	if err := p.run(ctx, filepath.Join(bin, "valhalla_build_tiles"), "-c", config, o.Map); err != nil {
		return p, err
	}
	p.probePath = "/status"
	p.command = func(folder, port string) ([]string, error) {
		config, err := writeConfig(folder, port)
		return []string{filepath.Join(bin, "valhalla_service"), config, strconv.Itoa(max(2, o.Threads))}, err
	}
	return p, p.measureFolder(tiles)
}
