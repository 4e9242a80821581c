package routerprocess

import (
	"context"
	"path/filepath"
	"strconv"

	"lieudit/queries/route"
)

// profileFiles are OSRM's own profiles.
var profileFiles = map[route.Mode]string{route.Car: "car.lua", route.Foot: "foot.lua", route.Bike: "bicycle.lua"}

// PrepareOSRM prepares a map for a mode, with OSRM's own profile and for its algorithm MLD.
func PrepareOSRM(ctx context.Context, o Options, mode route.Mode) (p Prepared, err error) {
	if p, err = newPrepared(&o, OSRM); err != nil {
		return p, err
	}
	bin := filepath.Join(o.Programs, OSRM, "bin")
	network := filepath.Join(o.Folder, "net.osrm")
	extract := []string{
		"-p", filepath.Join(o.Programs, OSRM, "share", "profiles", profileFiles[mode]), "--data_version", "osmosis",
		"-t", strconv.Itoa(o.Threads), "-o", network, o.Map,
	}
	if o.SmallComponent > 0 {
		extract = append(extract, "--small-component-size", strconv.Itoa(o.SmallComponent))
	}
	for _, program := range [][]string{
		append([]string{"osrm-extract"}, extract...),
		{"osrm-partition", "-t", strconv.Itoa(o.Threads), network},
		{"osrm-customize", "-t", strconv.Itoa(o.Threads), network},
	} {
		if err := p.run(ctx, filepath.Join(bin, program[0]), program[1:]...); err != nil {
			return p, err
		}
	}
	p.probePath = "/nearest/v1/driving/0,0"
	p.command = func(_, port string) ([]string, error) {
		command := []string{filepath.Join(bin, "osrm-routed"), "-i", "127.0.0.1", "-p", port, "-t", strconv.Itoa(max(2, o.Threads)), "-a", "mld"}
		if o.MaxTable > 0 {
			command = append(command, "--max-table-size", strconv.Itoa(o.MaxTable))
		}
		return append(command, network), nil
	}
	return p, p.measureFolder(o.Folder)
}
