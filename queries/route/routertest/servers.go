package routertest

import (
	"context"
	"os"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/leveltest"
	"lieudit/queries/route"
	"lieudit/queries/route/routerprocess"
)

const (
	prepareLimit = 2 * time.Minute
	startLimit   = time.Minute
)

// StartOSRM prepares a PBF for a mode and serves it until the test ends. It returns the server's URL.
func StartOSRM(t testing.TB, pbf string, mode route.Mode) string {
	t.Helper()
	o := newOptions(t, routerprocess.OSRM, pbf)
	o.SmallComponent = 20 // the default, 1,000, is more than a test has
	return serve(t, func(ctx context.Context) (routerprocess.Prepared, error) {
		return routerprocess.PrepareOSRM(ctx, o, mode)
	})
}

// StartValhalla prepares a PBF and serves it until the test ends. It returns the server's URL.
func StartValhalla(t testing.TB, pbf string) string {
	t.Helper()
	o := newOptions(t, routerprocess.Valhalla, pbf)
	return serve(t, func(ctx context.Context) (routerprocess.Prepared, error) {
		return routerprocess.PrepareValhalla(ctx, o)
	})
}

// newOptions finds the programs of an engine and prepares the map in a folder of the test.
func newOptions(t testing.TB, engine, pbf string) routerprocess.Options {
	t.Helper()
	return routerprocess.Options{Programs: FindPrograms(t, engine), Folder: t.TempDir(), Map: pbf, Threads: 1}
}

// FindPrograms returns the folder of the programs of all engines, for a test that needs one of them. Such tests belong to the whole
// level of the check.
func FindPrograms(t testing.TB, engine string) string {
	t.Helper()
	folder := os.Getenv(routerprocess.FolderVariable)
	missing := leveltest.Missing("go run ./cmd/check -all installs the programs of "+engine+"; "+
		"or unzip the wheels osrm-bindings and pyvalhalla of PyPI into one folder and name it in "+routerprocess.FolderVariable,
		routerprocess.CheckPrograms(folder, engine))
	leveltest.Need(t, leveltest.Whole, missing)
	return folder
}

// serve prepares a map and serves it until the test ends.
func serve(t testing.TB, prepare func(context.Context) (routerprocess.Prepared, error)) string {
	t.Helper()
	prepared, err := prepare(deadlinetest.Context(t, prepareLimit))
	if err != nil {
		t.Fatal(err)
	}
	server, err := prepared.Serve(deadlinetest.Context(t, startLimit))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server.URL
}
