// Package routerprocess prepares a map with the real programs of OSRM and Valhalla and serves it with their servers, for tests and
// benchmarks. No server outlives this process, however it ends.
//
//	FILE.osm.pbf ── PrepareOSRM, PrepareValhalla ──► Prepared ── Serve ──► Server.URL, until Server.Stop
//
// It only checks that the servers answer: packages osrm and valhalla do the rest.
package routerprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// FolderVariable is the environment variable with the folder of the programs of OSRM and Valhalla: it holds osrm/bin,
// osrm/share/profiles and valhalla/bin, as the wheels of osrm-bindings and pyvalhalla on PyPI do.
const FolderVariable = "LIEUDIT_TEST_ROUTERS"

// The engines, as their folders are called.
const (
	OSRM     = "osrm"
	Valhalla = "valhalla"
)

// Options say what is prepared, where and how.
type Options struct {
	Programs string // folder of the programs of both engines, as FolderVariable names one
	Folder   string // for the prepared files: it must be empty, and the caller removes it
	Map      string // the PBF
	Threads  int    // of the preparation and of the server

	// Options of OSRM only. 0 stands for its default.
	SmallComponent int // a component of fewer edges is left for a larger one nearby
	MaxTable       int // how many positions a table may have
}

// Prepared is a map that a server can be started on, any number of times.
type Prepared struct {
	Duration   time.Duration // of all programs that prepared it
	PeakMemory int64         // the most bytes that one of them used; 0 if the system does not report it
	Bytes      int64         // size of the prepared files

	// command is the server's command line. folder is used only by this server.
	command   func(folder, port string) ([]string, error)
	probePath string // what a server answers once it is ready
}

// CheckPrograms fails if a folder does not hold the programs of an engine.
func CheckPrograms(programs, engine string) error {
	if programs == "" {
		return fmt.Errorf("%s names no folder of programs", FolderVariable)
	}
	_, err := os.Stat(filepath.Join(programs, engine, "bin"))
	return err
}

// newPrepared checks the common options of both engines, and makes paths absolute, because the programs run in other folders.
func newPrepared(o *Options, engine string) (p Prepared, err error) {
	for _, path := range []*string{&o.Programs, &o.Folder, &o.Map} {
		var pathErr error
		*path, pathErr = filepath.Abs(*path)
		err = errors.Join(err, pathErr)
	}
	o.Threads = max(1, o.Threads)
	return p, errors.Join(err, CheckPrograms(o.Programs, engine))
}

// run runs a program of the preparation to its end, or kills it when ctx ends.
func (p *Prepared) run(ctx context.Context, program string, args ...string) error {
	began := time.Now()
	cmd := exec.CommandContext(ctx, program, args...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(program), errors.Join(ctx.Err(), err), lastLines(output))
	}
	p.Duration += time.Since(began)
	p.PeakMemory = max(p.PeakMemory, peakMemory(cmd.ProcessState))
	return nil
}

// measureFolder sets Bytes.
func (p *Prepared) measureFolder(folder string) error {
	return filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			p.Bytes += info.Size()
		}
		return err
	})
}

// lastLines is the end of what a program printed, which says why it failed.
func lastLines(output []byte) []byte {
	const most = 2 << 10
	return bytes.TrimSpace(output[max(0, len(output)-most):])
}
