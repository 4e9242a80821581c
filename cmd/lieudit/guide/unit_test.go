package guide

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// systemd-analyze refuses a unit whose program is not there, so it sees another one.
func TestTheUnitIsAcceptedBySystemd(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil && os.Getenv("LIEUDIT_CHECK") == "1" {
		t.Fatal("systemd-analyze is not there (Debian: apt-get install systemd)")
	}
	if err != nil {
		t.Skip("systemd-analyze is not there (Debian: apt-get install systemd)")
	}
	unit, err := ReadFile("systemd/lieudit.service")
	if err != nil {
		t.Fatal(err)
	}
	program := "/usr/local/bin/lieudit"
	if !strings.Contains(string(unit), "ExecStart="+program+" serve") {
		t.Fatalf("the unit does not start %s", program)
	}
	path := filepath.Join(t.TempDir(), "lieudit.service")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(unit), program, "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), tool, "verify", "--man=no", path).CombinedOutput()
	if err != nil || strings.Contains(string(out), "lieudit.service") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
