package main

import (
	"path/filepath"
	"testing"
)

// TestSchemathesisFindsNothing holds the service to its documents, with the checks that schemathesis has by default and with a
// fixed seed. testdata/clients/stated.py says which refusals the documents state in words alone. Each surface has a service of its
// own, because the tool may end an account whose key the other would use.
func TestSchemathesisFindsNothing(t *testing.T) {
	t.Parallel()
	tools := findClientTools(t)
	hooks, err := filepath.Abs("testdata/clients")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range clientSurfaces(t, startProcessReady(t)) {
		t.Run(s.name, func(t *testing.T) {
			tools.run(t, t.TempDir(), "env", "SCHEMATHESIS_HOOKS=stated", "PYTHONPATH="+hooks+string(filepath.ListSeparator)+filepath.Join(string(tools), "python"),
				filepath.Join(string(tools), "python", "bin", "schemathesis"), "run", s.document+".json", "--url", s.url, "--header", "Authorization:Bearer "+s.token,
				"--seed", "1", "--max-examples", "5", "--workers", "1", "--continue-on-failure", "--warnings", "off")
		})
	}
}
