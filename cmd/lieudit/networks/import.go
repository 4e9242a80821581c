// Package networks imports road networks into a data folder. A road network is one map of OpenStreetMap, built into a file on
// which routes are found; its date is that of the map. The package tells package releases what is particular to road
// networks, and builds one from a map. The current network stays served until the new one is complete.
//
//	Sources: a map, or a finished network ──> Import.Run ──> releases.Folder.Add ──> network.Build
package networks

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"time"

	"lieudit/cmd/lieudit/releases"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/mappedfile"
	"lieudit/queries/route/network"
	"lieudit/queries/route/osmpbf"
	"lieudit/queries/route/synthetic"
)

// Folder is the folder of road networks in a data folder.
type Folder = releases.Folder[*network.Network]

// FolderIn returns the folder of road networks in a data folder. It need not exist yet.
func FolderIn(data string) Folder {
	format := network.Format()
	return releases.FolderIn(data, releases.Kind[*network.Network]{
		Noun: "road network", Contents: "routes",
		FolderName: "networks", Extension: ".network", LastRealFile: "last-network",
		RepairAdvice: "put it back from a backup, or import the map again: lieudit roads import FILE.osm.pbf",
		HasMagic:     format.HasMagic,
		Versions:     format.Versions,
		Open:         network.Open,
		File:         func(n *network.Network) *mappedfile.File { return n.File },
		Describe:     func(n *network.Network) releases.Label { return LabelOf(n.Meta) },
	})
}

// LabelOf returns the label of a road network. Its date is "map" if the map has none.
func LabelOf(m network.Meta) releases.Label {
	l := releases.Label{Date: "map", IsSynthetic: m.IsSynthetic}
	if !m.Date.IsZero() {
		l.Date = m.Date.UTC().Format(time.DateOnly)
	}
	return l
}

// Import is one import into a folder: of one map, from which it builds a road network, or of one finished road network. The
// caller closes Sources.
type Import struct {
	Folder
	Sources  *releases.Sources
	Date     string                                // of the data, such as 2026-11-21, for a map that says none; "" takes that of the file
	SHA256   string                                // of a finished network, in hexadecimal; "" for a map
	Progress func(stage string, done, total int64) // called while a map is fetched and built, by one goroutine at a time; total is 0 while unknown
	Now      time.Time                             // becomes part of the new network's name
}

// FetchStage is the stage of an import in which a map is fetched; the other stages are those of network.Build.
const FetchStage = "fetch"

// fetchInterval is how often the progress of a fetch is reported.
const fetchInterval = 100 * time.Millisecond

// demoSeed decides which roads a demo has. They are the same on every machine, so that examples in the documentation and tests
// can name them.
const demoSeed = 2026

// DateSource is the source of a road network's date.
type DateSource int

// The sources, the best first.
const (
	DateOfMap    DateSource = iota // the map says it, or a finished network
	DateOfCaller                   // Import.Date
	DateInName                     // of the file
	DateOfFile                     // its last change
)

// Summary describes what an import brought.
type Summary struct {
	network.Summary
	DateSource DateSource
}

// SeveralError means that several maps were given, whose roads this program does not join.
type SeveralError struct{ Count int }

func (e *SeveralError) Error() string {
	return fmt.Sprintf("a road network is built from one map, not from %d: osmium merge joins maps", e.Count)
}

// Run makes a road network of the source the current one: it builds one from a map, or copies a finished one. It does not
// wait for a running service; AwaitServed does. Its errors are those of Folder.Add, of reading a map, *SeveralError, and
// those of releases about a finished network.
func (i Import) Run(ctx context.Context) (name string, s Summary, err error) {
	isFinished, err := i.IsFinished(i.Sources, i.SHA256)
	if err != nil {
		return "", s, err
	}
	if n := len(i.Sources.Files); n > 1 {
		return "", s, &SeveralError{n}
	}
	build := i.copyFinished
	if !isFinished {
		build = func(path string) (Summary, error) { return i.buildNetwork(ctx, path) }
	}
	name, err = i.Add(ctx, i.Now, func(path, _ string) (releases.Label, error) {
		s, err = build(path)
		return LabelOf(s.Meta), err
	})
	return name, s, err
}

// copyFinished copies the finished road network to a path and verifies it.
func (i Import) copyFinished(path string) (s Summary, err error) {
	n, err := i.CopyFinished(i.Sources, path, i.SHA256)
	if err != nil {
		return s, err
	}
	s.Meta, s.Bytes = n.Meta, n.Size()
	return s, n.Close()
}

// buildNetwork builds a road network of the map into a path. A map behind a URL is fetched into a file next to it first,
// because it is read more than once.
func (i Import) buildNetwork(ctx context.Context, path string) (s Summary, err error) {
	source := i.Sources.Files[0]
	local := source.Path
	if local == "" {
		local = path + ".osm.pbf"
		defer func() { err = errors.Join(err, os.Remove(local)) }()
		if err := i.fetchMap(local); err != nil {
			return s, err
		}
	}
	o := network.Options{Progress: i.Progress}
	if o.IsSynthetic, err = isInvented(local); err != nil {
		return s, nameSource(source.Name, local, err)
	}
	date, from := i.missingDate()
	if o.Date, err = time.Parse(time.DateOnly, date); err != nil {
		return s, err
	}
	if s.Summary, err = network.Build(ctx, path, local, o); err != nil {
		return s, nameSource(source.Name, local, err)
	}
	if s.Date.Equal(o.Date) {
		s.DateSource = from
	}
	return s, nil
}

// missingDate returns a date, and its source, for a map that has none.
func (i Import) missingDate() (date string, from DateSource) {
	if i.Date != "" {
		return i.Date, DateOfCaller
	}
	date, isFileDate := i.Sources.RoughDate()
	switch {
	case date == "": // it was fetched from a server that gave no date
		return i.Now.UTC().Format(time.DateOnly), DateOfFile
	case isFileDate:
		return date, DateOfFile
	}
	return date, DateInName
}

// nameSource makes an error name the map once, as the operator named it: an error that names the local file names the map instead.
func nameSource(name, local string, err error) error {
	if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), local+": ") {
		err = inner
	}
	return fmt.Errorf("%s: %w", name, err)
}

// isInvented reports whether a map says that its roads are invented. It fails with the errors of package osmpbf.
func isInvented(path string) (bool, error) {
	file, err := osmpbf.Open(path)
	if err != nil {
		return false, err
	}
	return file.Header().Generator == synthetic.Generator, file.Close()
}

// fetchMap copies the map behind a URL to a path and reports how many bytes have arrived.
func (i Import) fetchMap(path string) error {
	done := make(chan error, 1)
	go func() {
		_, err := i.Sources.Files[0].CopyTo(path)
		done <- err
	}()
	ticker := time.NewTicker(fetchInterval)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			i.Progress(FetchStage, i.Sources.BytesRead.Load(), i.Sources.TotalBytes)
		}
	}
}

// AddDemo invents the roads of a demo, along the streets of the addresses in rows and between their towns, and makes that network the
// current one.
func AddDemo(ctx context.Context, f Folder, now time.Time, communes *commune.Table, rows iter.Seq2[ban.Row, error]) error {
	streets, err := synthetic.ReadStreets(rows)
	if err != nil {
		return err
	}
	_, err = f.Add(ctx, now, func(path, _ string) (_ releases.Label, err error) {
		label := releases.Label{Date: releases.DemoDate, IsSynthetic: true}
		source := path + ".osm.pbf"
		defer func() { err = errors.Join(err, os.Remove(source)) }()
		if err := writeMap(ctx, source, communes, streets); err != nil {
			return label, err
		}
		_, err = network.Build(ctx, path, source, network.Options{IsSynthetic: true, Date: now})
		return label, err
	})
	return err
}

// writeMap writes a map of invented roads to a file.
func writeMap(ctx context.Context, path string, communes *commune.Table, streets []synthetic.Street) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = synthetic.Generate(ctx, file, communes, synthetic.Options{Streets: streets, Seed: demoSeed})
	return errors.Join(err, file.Close())
}
