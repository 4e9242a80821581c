package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/measure"
	"lieudit/cmd/bench/route"
	"lieudit/cmd/terminal"
	"lieudit/queries/route/routerprocess"
)

const routeDescription = `The map is imported; durations and distances of random pairs are compared with Dijkstra's algorithm on the same
network; then every kind of question is asked, one at a time, of the own engine in this process and of the servers over
HTTP. With --routers the map is prepared by the programs of OSRM (its own car profile, MLD) and Valhalla, and their servers
are started on free ports and ended. A server whose URL is given must have the same map, and OSRM --max-table-size 1000.
What a server cannot answer is counted as errors, 20 at most for a figure. It leaves nothing behind.

  go run ./cmd/bench route --map porto.osm.pbf
  go run ./cmd/bench route --map porto.osm.pbf --routers ~/.cache/lieudit-check/…
  go run ./cmd/bench route --map porto.osm.pbf --osrm http://127.0.0.1:5000 --valhalla http://127.0.0.1:8002 --json

With --pairs or --random it does something else: it compares the routes between those positions with the routes of OSRM and
Valhalla, pair by pair. Of the pairs that both peers route it counts those that the own engine does not, those where its way is
a tenth longer or shorter than both, and those of the same way whose duration differs from OSRM's by 12 % and 40 s; it names
the kinds of these differences and lists the worst. Then each server is asked for the pairs over HTTP, with geometry and
steps, in turns: time, processor time and size of an answer, and of the own service what its parts take; and for isochrones of half
an hour around some of their origins.

  go run ./cmd/bench route --map porto.osm.pbf --random 300
  go run ./cmd/bench route --map porto.osm.pbf --pairs pairs.txt --worst 50 --over-http=false

With --junctions it compares four ways from each of some junctions with a one-way street, and four to each, and counts the junctions
of which one is more than 5 s and 30 s slower than OSRM's.

  go run ./cmd/bench route --map porto.osm.pbf --junctions 250 --over-http=false

A line of the file is a pair: 41.15,-8.61 41.16,-8.62 (latitude, longitude). The kinds, of which the first that holds is told:
peers farther and OSRM
farther, they leave out the small part of the network in which the nearest road lies; second road, the own engine takes one that is
up to 25 m farther than the nearest (beyond a wall or on another level is told, as nobody steps there); as near, two roads are, such
as both carriageways of a road; access, an end is off the road; gate, restricted, forbidden, ferry, construction, track or path: one side drives there;
direction, the ends are left the other way round; forbidden turn and closed, the own engine cannot drive OSRM's way; told time, both
drive the same way; choice, it could drive OSRM's way, but prefers its own: at a like time (5 % or 5 s), as it is faster, or for its
better roads; worse by own reckoning, it should have driven OSRM's way.`

// routeCommand measures the router on one map.
func (p program) routeCommand() *cli.Command {
	programs, _ := p.LookupEnv(routerprocess.FolderVariable)
	return p.newFigureCommand(&cli.Command{
		Name:        "route",
		Usage:       "Measure the router on a map: import, exactness, speed, and servers of OSRM and Valhalla beside it",
		Description: routeDescription,
		Flags:       routeFlags(programs),
	}, func(ctx context.Context, c *cli.Command, dir string, out measure.Output) error {
		if c.String("pairs") != "" || c.Int("random") > 0 || c.Int("junctions") > 0 {
			return route.ComparePairs(ctx, dir, route.PairOptions{
				File: c.String("map"), OSRM: c.String("osrm"), Valhalla: c.String("valhalla"), Programs: c.String("routers"),
				Pairs: c.String("pairs"), Random: c.Int("random"), Junctions: c.Int("junctions"), Seed: c.Uint64("seed"), Worst: c.Int("worst"), OverHTTP: c.Bool("over-http"),
			}, out)
		}
		return route.Run(ctx, dir, route.Options{
			File: c.String("map"), OSRM: c.String("osrm"), Valhalla: c.String("valhalla"), Programs: c.String("routers"),
			Pairs: c.Int("compared"), Sites: c.Int("sites"), FigureDuration: c.Duration("turn"), Seed: c.Uint64("seed"),
		}, out)
	})
}

// routeFlags are the flags of routeCommand. programs is the folder of the peers' programs that the environment names.
func routeFlags(programs string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "map", Usage: "`FILE` in OSM PBF", Required: true, TakesFile: true},
		&cli.StringFlag{
			Name: "routers", Value: programs, TakesFile: true,
			Usage: "`FOLDER` of the programs of OSRM and Valhalla, which go run ./cmd/check -all unpacks; default: " + routerprocess.FolderVariable,
		},
		&cli.StringFlag{Name: "osrm", Usage: "`URL` of osrm-routed for cars"},
		&cli.StringFlag{Name: "valhalla", Usage: "`URL` of valhalla_service"},
		&cli.StringFlag{Name: "pairs", Usage: "compare the pairs of `FILE` alone", TakesFile: true},
		&cli.IntFlag{Name: "random", Usage: "compare `HOW MANY` random pairs alone"},
		&cli.IntFlag{Name: "junctions", Usage: "compare `HOW MANY` junctions with a one-way street alone, four ways from each and to each"},
		&cli.IntFlag{Name: "worst", Value: 10, Usage: "`HOW MANY` pairs of each verdict are listed"},
		&cli.BoolFlag{Name: "over-http", Value: true, Usage: "time the pairs over HTTP"},
		&cli.IntFlag{Name: "compared", Value: 500, Usage: "`HOW MANY` pairs are compared without --pairs or --random", Validator: terminal.AtLeastOne},
		&cli.IntFlag{Name: "sites", Value: 10_000, Usage: "`HOW MANY` sites the nearest are looked for among", Validator: terminal.AtLeastOne},
		&cli.DurationFlag{Name: "turn", Value: 2 * time.Second, Usage: "`TIME` for each figure"},
		&cli.Uint64Flag{Name: "seed", Value: 21, Usage: "`SEED` of the positions"},
	}
}
