package engine

import (
	"path/filepath"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/network"
	"lieudit/queries/route/routertest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	routertest.Test(t, func(t testing.TB, pbf string) route.Router { return open(t, pbf) }, routertest.Options{})
}

// open builds the network of a map and opens it.
func open(t testing.TB, pbf string) *Engine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "network")
	if _, err := network.Build(t.Context(), path, pbf, network.Options{}); err != nil {
		t.Fatal(err)
	}
	n, err := network.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return New(n)
}
