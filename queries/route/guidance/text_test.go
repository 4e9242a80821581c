package guidance

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

var update = flag.Bool("update", false, "write the golden files anew")

// readSteps reads the table testdata/steps.txt.
func readSteps(t *testing.T) (steps []route.Step) {
	t.Helper()
	table, err := os.ReadFile("testdata/steps.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			steps = append(steps, parseStep(t, line))
		}
	}
	return steps
}

func parseStep(t *testing.T, line string) route.Step {
	t.Helper()
	cells := strings.Split(line, "|")
	if len(cells) < 5 {
		t.Fatalf("too few cells: %s", line)
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	s := route.Step{Name: cells[2], Ref: cells[3], Destinations: cells[4]}
	s.Maneuver.Type, s.Maneuver.Modifier = route.ManeuverType(cells[0]), route.Modifier(cells[1])
	if s.Maneuver.Type == route.Roundabout {
		s.Maneuver.Exit, _ = strconv.Atoi(cells[1])
		s.Maneuver.Modifier = route.Right
	}
	if len(cells) > 5 {
		readOther(&s, cells[5])
	}
	return s
}

// readOther reads the last cell of a line.
func readOther(s *route.Step, cell string) {
	key, value, _ := strings.Cut(cell, "=")
	switch key {
	case "bearing":
		s.Maneuver.BearingAfter, _ = strconv.ParseFloat(value, 64)
	case "sign":
		s.Maneuver.Sign = value
	case "path":
		s.PathKind = route.PathKind(value)
	case "same":
		s.Maneuver.IsSameRoad = true
	case "stop":
		s.Maneuver.Stop, _ = strconv.Atoi(value)
	}
}

func TestStepsAreToldInFrenchAndEnglish(t *testing.T) {
	t.Parallel()
	var told strings.Builder
	steps := readSteps(t)
	if len(steps) < 200 {
		t.Errorf("got %d steps, want 200 at least", len(steps))
	}
	for _, s := range steps {
		fmt.Fprintf(&told, "%s\n\t%s\n", Text(French, s), Text(English, s))
	}
	const path = "testdata/texts.txt"
	if *update {
		if err := os.WriteFile(path, []byte(told.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), told.String()); diff != "" {
		t.Errorf("texts differ from %s (-want +got); -update writes it anew:\n%s", path, diff)
	}
}

func TestASentenceIsWellFormed(t *testing.T) {
	t.Parallel()
	for _, s := range readSteps(t) {
		for _, l := range []Language{French, English} {
			text := Text(l, s)
			if text != strings.Join(strings.Fields(text), " ") || !unicode.IsUpper([]rune(text)[0]) || strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q", l, text)
			}
		}
	}
}

func TestAnUnknownLanguageIsFrench(t *testing.T) {
	t.Parallel()
	s := route.Step{Maneuver: route.Maneuver{Type: route.TakeFerry}}
	if got, want := Text("", s), "Prenez le bac"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestADepartureHasTheDirectionOfItsGeometry(t *testing.T) {
	t.Parallel()
	s := route.Step{
		Maneuver: route.Maneuver{Type: route.Depart}, Name: "Rue Foch",
		Geometry: []geo.Point{{Lon: 4.85, Lat: 45.75}, {Lon: 4.86, Lat: 45.75}},
	}
	if got, want := Text(French, s), "Partez vers l'est dans la rue Foch"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestANumberOfFourDigitsIsNoMotorways(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]bool{"A 6": true, "A6": true, "A 40; E 62": true, "A 630": true, "A 3200": false, "A": false, "A 7b": true, "Av 3": false, "D 6": false} {
		if got := isMotorwayRef(ref); got != want {
			t.Errorf("%s: %v, want %v", ref, got, want)
		}
	}
}
