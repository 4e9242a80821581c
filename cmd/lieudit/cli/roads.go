package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/networks"
	"lieudit/cmd/lieudit/releases"
	"lieudit/cmd/terminal"
	"lieudit/eventstore/disk/dirlock"
	"lieudit/eventstore/disk/osfile"
	"lieudit/queries/address/commune"
	"lieudit/queries/route"
	"lieudit/queries/route/network"
	"lieudit/queries/route/synthetic"
)

// roadsCommand groups the commands on the road networks of a data folder. A road network is one map of OpenStreetMap as a file
// on which routes are found. The commands need no running service; one that runs on the folder takes an import over.
func (p Program) roadsCommand() *cli.Command {
	return terminal.NewGroup("roads", "The road network: import a map, see what is served, invent one",
		p.roadsImportCommand(), p.roadsStatusCommand(),
		p.newServeCommand("road network", func(ctx context.Context, c *cli.Command) error {
			return serveRelease(ctx, p, c, networks.FolderIn(c.String("data")))
		}), p.roadsGenerateCommand())
}

// roadsImportCommand is lieudit roads import: networks.Import on the data folder.
func (p Program) roadsImportCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "Build a road network from a map of OpenStreetMap and serve it",
		ArgsUsage: "FILE.osm.pbf|URL",
		Description: `The map is an extract in the format PBF, such as those of Geofabrik. A running service takes the network over
without a pause, and all other instances on its log fetch it; if anything fails, it stays with the one before.

  lieudit roads import languedoc-roussillon-latest.osm.pbf
  lieudit roads import https://download.geofabrik.de/europe/france-latest.osm.pbf

A finished network of another instance (lieudit roads status names its file) is taken over as it is:

  lieudit roads import https://files.example.org/2026-11.network --sha256 SUM`,
		Flags: []cli.Flag{
			p.dataFlag(),
			&cli.StringFlag{Name: "date", Usage: "`DATE` of the data, for a map that says none; else the one in its name, else the file's own", Validator: validateDate},
			&cli.StringFlag{Name: "sha256", Usage: "`SUM` of a finished network (lieudit roads status --sha256)"},
			&cli.BoolFlag{Name: "json", Usage: "print the result as JSON"},
		},
		Action: p.importNetwork,
	}
}

// importNetwork builds or copies a road network and makes it the current one. It returns when the running service and all
// other instances answer from it, or at once if no service runs. It lowers the priority of the whole process, which does
// nothing else, so that a service on this machine is not slowed down.
func (p Program) importNetwork(ctx context.Context, c *cli.Command) (err error) {
	begun := time.Now()
	sources, err := releases.OpenSources(ctx, c.Args().Slice())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sources.Close()) }()
	if p.LowerPriority != nil {
		p.LowerPriority()
	}
	bar := p.NewProgressBar()
	i := networks.Import{
		Folder: networks.FolderIn(c.String("data")), Sources: sources, SHA256: c.String("sha256"), Date: c.String("date"), Now: begun,
		Progress: func(stage string, done, total int64) { bar.Update(describeStage(stage), done, total) },
	}
	name, summary, err := i.Run(ctx)
	bar.Clear()
	if err != nil {
		return explainRoadsError(err)
	}
	took := time.Since(begun)
	p.warnOfDate(c.String("date"), summary)
	taken, err := awaitTakeover(ctx, i.Folder, name)
	if err != nil {
		return err
	}
	return errors.Join(p.printNetworkImport(c, networkImport{name, summary, took, taken}), taken.err())
}

// warnOfDate says which date a road network got whose map says none, and that a date of --date gave way to that of the map.
func (p Program) warnOfDate(wanted string, s networks.Summary) {
	date := s.Date.Format(time.DateOnly)
	switch {
	case s.DateSource == networks.DateInName:
		fmt.Fprintf(p.Err, "warning: the map says no date; %s is the one in the file's name; --date DATE sets it\n", date)
	case s.DateSource == networks.DateOfFile:
		fmt.Fprintf(p.Err, "warning: the map says no date, nor does its name; %s is the file's own; --date DATE sets it\n", date)
	case s.DateSource == networks.DateOfMap && wanted != "" && wanted != date:
		fmt.Fprintf(p.Err, "warning: --date %s is not used: the map says that it is of %s\n", wanted, date)
	}
}

// describeStage says what an import is doing.
func describeStage(stage string) string {
	switch stage {
	case networks.FetchStage:
		return "fetching the map"
	case network.StageRoads:
		return "reading roads"
	case network.StageNodes:
		return "reading junctions"
	case network.StageGeometry:
		return "cutting roads at junctions"
	case network.StageCells:
		return "dividing the map into cells"
	case network.StageGraphs:
		return "building the graphs of car, foot and bike"
	case network.StageShortcuts:
		return "computing shortcuts through the cells"
	}
	return stage
}

// explainRoadsError adds to an error of an import what can be done about it. Any other error is returned as it is; those about a
// map that cannot be read say what it is instead.
func explainRoadsError(err error) error {
	if held, ok := errors.AsType[*dirlock.HeldError](err); ok {
		return fmt.Errorf("another import is at work: %w", held)
	}
	if sum, ok := errors.AsType[*releases.ChecksumError](err); ok && sum.Want == "" {
		return errors.New("a finished road network is imported with its SHA-256: --sha256 SUM (lieudit roads status --sha256 prints it where it was built)")
	}
	if osfile.IsDiskFull(err) {
		return errors.New("the disk is full: while a road network is built it takes up to ten times the size of the map, " +
			"beside the current one; nothing was changed")
	}
	return err
}

// networkImport is the result of an import, in the form in which it is printed.
type networkImport struct {
	name string // of the new road network
	networks.Summary
	took  time.Duration
	taken takeover
}

// printNetworkImport prints the result of an import, with --json as one JSON object whose keys are French, as those of the API.
func (p Program) printNetworkImport(c *cli.Command, r networkImport) error {
	if c.Bool("json") {
		return p.PrintJSON(struct {
			Name string `json:"nom"`
			network.Meta
			Bytes   int64   `json:"octets"`
			Seconds float64 `json:"secondes"`
			Served  bool    `json:"servi"`
			takeoverJSON
		}{r.name, r.Meta, r.Bytes, r.took.Seconds(), r.taken.isServed, r.taken.json()})
	}
	fields := append(describeNetwork(r.Meta), "size", terminal.FormatBytes(r.Bytes), "took", r.took.Round(time.Second/10).String(),
		"left out", describeLeftOut(r.LeftOut))
	if err := p.PrintFields(fields...); err != nil {
		return err
	}
	return r.taken.print(p)
}

// describeLeftOut tells how many turn restrictions no mode observes, and why. It returns "" if there are none.
func describeLeftOut(all []network.LeftOut) string {
	total, reasons := 0, make([]string, len(all))
	for i, l := range all {
		total += l.Count
		reasons[i] = fmt.Sprintf("%s %s", terminal.GroupThousands(l.Count), l.Reason)
	}
	return terminal.EmptyIf(total == 0, fmt.Sprintf("%s turn restrictions (%s)", terminal.GroupThousands(total), strings.Join(reasons, ", ")))
}

// describeNetwork returns the fields that describe a road network: its date, and of each mode its size.
func describeNetwork(m network.Meta) []string {
	date := "the map says none"
	if !m.Date.IsZero() {
		date = m.Date.UTC().Format(time.DateOnly)
	}
	fields := []string{"date", date, "roads", terminal.GroupThousands(m.Roads)}
	for _, of := range m.Modes {
		fields = append(fields, string(of.Mode), fmt.Sprintf("%s segments, %s junctions, %s turn restrictions",
			terminal.GroupThousands(of.Segments), terminal.GroupThousands(of.Junctions), terminal.GroupThousands(of.Restrictions)))
	}
	return append(fields, "invented", terminal.EmptyIf(!m.IsSynthetic, "SYNTHETIC: roads that exist nowhere"),
		"source", terminal.EmptyIf(m.IsSynthetic, route.OSMAttribution))
}

// roadsStatusCommand is lieudit roads status. It reads the data folder, whether a service runs or not.
func (p Program) roadsStatusCommand() *cli.Command {
	return p.newStatusCommand("Show the current road network: date, segments, size, age", p.printNetworkStatus)
}

// networkStatus is the current road network of a data folder, as --json prints it.
type networkStatus struct {
	releaseStatus
	network.Meta
}

// errNoNetwork says that the data folder never had a road network. One that lost it is a *releases.LostError.
var errNoNetwork = errors.New("there is no road network in this data folder yet: lieudit roads import FILE.osm.pbf")

// printNetworkStatus prints the current road network. The checksum is computed only with --sha256, since it reads the whole file.
func (p Program) printNetworkStatus(_ context.Context, c *cli.Command) error {
	folder := networks.FolderIn(c.String("data"))
	n, name, err := openCurrent(folder, errNoNetwork)
	if err != nil {
		return err
	}
	defer n.Close()
	s := networkStatus{Meta: n.Meta}
	if s.releaseStatus, err = readReleaseStatus(folder, name, n.File, c.Bool("sha256")); err != nil {
		return err
	}
	if c.Bool("json") {
		return p.PrintJSON(s)
	}
	madeFor := terminal.EmptyIf(!releases.IsDemo(name), "the invented addresses, and served beside no others")
	return p.printStatus(append(describeNetwork(s.Meta), "made for", madeFor), s.releaseStatus)
}

// roadsGenerateCommand is lieudit roads generate: synthetic.Generate, which invents a map. It needs neither a data folder nor a
// service.
func (p Program) roadsGenerateCommand() *cli.Command {
	return &cli.Command{
		Name:  "generate",
		Usage: "Write a map of invented roads, for tests and measurements",
		Description: `The map is in the format that roads import takes, and says that it is invented: the service shows it. The same count
and seed give the same bytes.

  lieudit roads generate --segments 100000 --out synthetic.osm.pbf`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "segments", Value: 100_000, Usage: "`HOW MANY` pieces of road between junctions, each direction by itself, about", Validator: terminal.AtLeastOne},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "`NUMBER` that decides what is invented"},
			&cli.StringFlag{Name: "out", Required: true, Usage: "`FILE`; - for standard output", TakesFile: true},
		},
		Action: p.generateRoads,
	}
}

// generateRoads writes an invented map to the file of --out or to standard output.
func (p Program) generateRoads(ctx context.Context, c *cli.Command) error {
	communes, err := commune.Load()
	if err != nil {
		return err
	}
	out, err := p.openOutput(c.String("out"))
	if err != nil {
		return err
	}
	bar := p.NewProgressBar()
	progress := func(done, total int) {
		bar.Update("roads of "+terminal.GroupThousands(done)+" towns", int64(done), int64(total))
	}
	_, err = synthetic.Generate(ctx, out, communes, synthetic.Options{Segments: c.Int("segments"), Seed: c.Uint64("seed"), Progress: progress})
	bar.Clear()
	return out.finish(err)
}
