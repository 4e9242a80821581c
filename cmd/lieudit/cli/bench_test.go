package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBenchLogPrintsFiguresAndLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line := "lieudit bench log --turns 1 --events 1000 --dir " + dir
	code, out, stderr := runCommand(t, nil, line)
	if heads, _, _ := strings.Cut(out, "\n"); code != 0 || len(strings.Split(out, "\n")) < 6 || !strings.Contains(heads, "RAW LIMIT") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	_, out, _ = runCommand(t, nil, line+" --json")
	for figure := range strings.Lines(out) {
		var got struct {
			Name  string
			Value float64
		}
		if err := json.Unmarshal([]byte(figure), &got); err != nil || got.Name == "" {
			t.Errorf("%q: %v", figure, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if code, _, _ := runCommand(t, nil, "lieudit bench log --turns 0"); code != 2 {
		t.Errorf("no turns: exit %d, want 2", code)
	}
}

func TestBenchAddressPrintsFiguresAndLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line := "lieudit bench address --sizes 500,1k --turn 5ms --connections 2 --dir " + dir
	code, out, stderr := runCommand(t, nil, line)
	if code != 0 || strings.Count(out, "\n") != 1+2*11 || !strings.Contains(out, "autocomplete") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	_, out, _ = runCommand(t, nil, line+" --json")
	for figure := range strings.Lines(out) {
		var got struct {
			Rows      int     `json:"lignes"`
			PerSecond float64 `json:"par_seconde"`
		}
		if err := json.Unmarshal([]byte(figure), &got); err != nil || got.Rows == 0 || got.PerSecond <= 0 {
			t.Errorf("%q: %v", figure, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, wrong := range []string{"", "10x", "0", "1G", "-5"} {
		if code, _, _ := runCommand(t, nil, "lieudit bench address --sizes '"+wrong+"'"); code != 2 {
			t.Errorf("sizes %q: exit %d, want 2", wrong, code)
		}
	}
}

func TestBenchAddressCountsWhatIsFoundOfFiles(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "rows.csv.gz")
	if code, _, stderr := runCommand(t, nil, "lieudit ban generate --addresses 400 --seed 1 --out "+file); code != 0 {
		t.Fatal(stderr)
	}
	line := "lieudit bench address --file " + file + " --questions 3 --turn 5ms --connections 2 --dir " + dir
	code, out, stderr := runCommand(t, nil, line)
	if code != 0 || !strings.Contains(out, "FALSE EXACT") || !strings.Contains(out, "wrong postcode") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	_, out, _ = runCommand(t, nil, line+" --json")
	scores := 0
	for figure := range strings.Lines(out) {
		var got struct {
			Kind  string `json:"bruit"`
			Asked int    `json:"questions"`
			First int    `json:"premier"`
			Rows  int    `json:"lignes"`
		}
		if err := json.Unmarshal([]byte(figure), &got); err != nil || got.Rows == 0 && got.Kind == "" || got.First > got.Asked {
			t.Errorf("%q: %v", figure, err)
		}
		if got.Kind == "clean" && got.First == 3 {
			scores++
		}
	}
	if scores != 1 {
		t.Errorf("clean addresses are not found: %s", out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, wrong := range []string{"--questions 0", "--meilisearch 127.0.0.1", "--meilisearch http://"} {
		if code, out, _ := runCommand(t, nil, "lieudit bench address "+wrong); code != 2 || out != "" {
			t.Errorf("%s: exit %d, said %q; want 2 and nothing", wrong, code, out)
		}
	}
}

func TestBenchesOfProcessesRefuseWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"bench meter --instances 0", "bench meter --cap 0", "bench meter --seed x", "bench meter --postgres postgres://x --runs 2",
		"bench api --connections 0", "bench api --connections 1,x", "bench api --log tape", "bench api --seconds 0",
		"bench chaos --kills 0", "bench chaos --profile tape", "bench chaos --rows 6001", "bench chaos --minutes 0",
	} {
		if code, out, _ := runCommand(t, nil, "lieudit "+line); code != 2 || out != "" {
			t.Errorf("%s: exit %d, said %q; want 2 and nothing", line, code, out)
		}
	}
}
