package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/guidance"
	"lieudit/queries/route/osmpbf"
	"lieudit/queries/route/profile"
	"lieudit/schemas/geo"
)

// town is a map drawn with letters, each of which is a node. Letters that stand side by side are some 200 m apart, lines 50 m.
type town struct {
	grid        string
	ways, nodes []string // the letters of the nodes and tags: "abc highway=primary"
	origin      [2]int32 // where the grid begins, in units of 1e-7 degrees
}

// position is where a letter of the grid lies, in units of 1e-7 degrees.
func (w *town) position(letter byte) (lon, lat int32, ok bool) {
	for y, line := range strings.Split(w.grid, "\n") {
		if x := strings.IndexByte(line, letter); x >= 0 {
			return w.origin[0] + int32(x)*18_000, w.origin[1] - int32(y)*4_500, true
		}
	}
	return 0, 0, false
}

// writeMap writes the town as a map and returns its path.
func (w *town) writeMap(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "town.osm.pbf")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := osmpbf.NewWriter(file, osmpbf.Header{})
	if err := w.writeElements(out); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func (w *town) writeElements(out *osmpbf.Writer) error {
	tags := map[byte]osmpbf.Tags{}
	for _, line := range w.nodes {
		tags[line[0]] = parseTags(line)
	}
	for letter := byte('a'); letter <= 'z'; letter++ {
		if lon, lat, ok := w.position(letter); ok {
			if err := out.WriteNode(osmpbf.Node{ID: int64(letter), Lon: lon, Lat: lat, Tags: tags[letter]}); err != nil {
				return err
			}
		}
	}
	for i, line := range w.ways {
		way := osmpbf.Way{ID: int64(i + 1), Tags: parseTags(line)}
		for _, letter := range strings.Fields(line)[0] {
			way.Nodes = append(way.Nodes, int64(letter))
		}
		if err := out.WriteWay(way); err != nil {
			return err
		}
	}
	return nil
}

// parseTags reads the tags of a line. An underscore stands for a space in a name.
func parseTags(line string) (tags osmpbf.Tags) {
	for _, field := range strings.Fields(line)[1:] {
		key, value, _ := strings.Cut(field, "=")
		if key == "name" || key == "ref" {
			value = strings.ReplaceAll(value, "_", " ")
		}
		tags = append(tags, osmpbf.Tag{Key: key, Value: value})
	}
	return tags
}

// stepsBetween returns the sentences from a letter to another, without the departure and the arrival.
func stepsBetween(t *testing.T, e *Engine, w *town, m route.Mode, l guidance.Language, from, to byte) (texts []string) {
	t.Helper()
	q := route.Query{Profile: route.Profile{Mode: m, Optimization: route.Fastest}, Steps: true}
	for _, letter := range []byte{from, to} {
		lon, lat, _ := w.position(letter)
		q.Bounds = append(q.Bounds, route.Bound{Point: geo.Point{Lon: float64(lon) / 1e7, Lat: float64(lat) / 1e7}})
	}
	a, err := e.Route(t.Context(), q)
	if err != nil {
		t.Fatalf("%s from %c to %c: %v", m, from, to, err)
	}
	steps := a.Routes[0].Legs[0].Steps
	for _, s := range steps[1 : len(steps)-1] {
		texts = append(texts, guidance.Text(l, s))
	}
	return texts
}

func TestTheNumberOfAnExitOnItsJunctionIsTold(t *testing.T) {
	t.Parallel()
	w := &town{
		grid: "abcdefghij\n\n   p q r\n\nn   k l mo",
		ways: []string{
			"abcdefghij highway=motorway ref=A_6", "cpk highway=motorway_link destination=Lyon oneway=yes",
			"eql highway=motorway_link destination=Dijon junction:ref=14 oneway=yes", "grm highway=motorway_link oneway=yes",
			"anklmoj highway=primary name=Rue_Haute",
		},
		nodes: []string{"c highway=motorway_junction ref=12", "e highway=motorway_junction ref=13", "g highway=motorway_junction"},
	}
	e := open(t, w.writeMap(t))
	for _, tt := range []struct {
		rule     string
		language guidance.Language
		from, to byte
		want     []string
	}{
		{"in French", guidance.French, 'b', 'p', []string{"Prenez la sortie 12 vers Lyon"}},
		{"in English", guidance.English, 'b', 'p', []string{"Take exit 12 towards Lyon"}},
		{"what the ramp says comes first", guidance.French, 'd', 'q', []string{"Prenez la sortie 14 vers Dijon"}},
		{"an exit without a number", guidance.French, 'f', 'r', []string{"Prenez la sortie à droite"}},
		{"who stays on the motorway hears nothing", guidance.French, 'b', 'i', nil},
	} {
		if got := stepsBetween(t, e, w, route.Car, tt.language, tt.from, tt.to); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.rule, got, tt.want)
		}
	}
}

func TestOnlyARampThatLeavesAMotorwayHasTheNumberOfTheJunction(t *testing.T) {
	t.Parallel()
	w := &town{
		grid: "abc\n d \n e",
		ways: []string{
			"abc highway=trunk oneway=yes", "bd highway=trunk_link oneway=yes",
			"de highway=trunk_link oneway=yes", "da highway=trunk_link oneway=yes",
		},
		nodes: []string{"b highway=motorway_junction ref=3", "d highway=motorway_junction ref=4"},
	}
	m := open(t, w.writeMap(t)).modes[route.Car]
	junctions := map[string]uint32{}
	for junction := range uint32(m.graph.Junctions()) {
		junctions[m.layer.JunctionExit(junction)] = junction
	}
	for _, tt := range []struct {
		rule       string
		ramp, from guidance.Road
		exit       string
		want       string
	}{
		{"a ramp off a trunk road", guidance.Road{IsLink: true}, guidance.Road{Class: profile.Trunk}, "3", "3"},
		{"a ramp off a street", guidance.Road{IsLink: true}, guidance.Road{Class: profile.Primary}, "3", ""},
		{"a ramp off a ramp", guidance.Road{IsLink: true}, guidance.Road{Class: profile.Trunk, IsLink: true}, "4", ""},
		{"the road itself", guidance.Road{}, guidance.Road{Class: profile.Motorway}, "3", ""},
	} {
		m.addExit(&tt.ramp, &tt.from, junctions[tt.exit])
		if tt.ramp.Exit != tt.want {
			t.Errorf("%s: got %q, want %q", tt.rule, tt.ramp.Exit, tt.want)
		}
	}
}

func TestTheExitOfAMiniRoundaboutIsTold(t *testing.T) {
	t.Parallel()
	roads := []string{
		"bx highway=residential name=Rue_Basse", "xn highway=residential name=Rue_Haute", "xe highway=residential name=Rue_Longue",
		"xs highway=residential name=Rue_Courte"}
	grid := "   n\n\n\n\n\nb  x  e\n\n\n\n\n   s"
	with, without := &town{grid: grid, ways: roads, nodes: []string{"x highway=mini_roundabout"}}, &town{grid: grid, ways: roads}
	for _, tt := range []struct {
		rule     string
		town     *town
		mode     route.Mode
		language guidance.Language
		to       byte
		want     []string
	}{
		{"the last of three", with, route.Car, guidance.French, 'n', []string{"Au rond-point, prenez la troisième sortie sur la rue Haute"}},
		{"straight on", with, route.Bike, guidance.English, 'e', []string{"At the roundabout, take the second exit onto Rue Longue"}},
		{"on foot it is a junction", with, route.Foot, guidance.French, 'n', []string{"Prenez à gauche la rue Haute"}},
		{"a junction without one", without, route.Car, guidance.French, 'n', []string{"Prenez à gauche la rue Haute"}},
	} {
		if got := stepsBetween(t, open(t, tt.town.writeMap(t)), tt.town, tt.mode, tt.language, 'b', tt.to); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.rule, got, tt.want)
		}
	}
}

// TestExitsAreCountedWhoeverMayDriveThere closes any of the arms of a roundabout to those who drive through.
func TestExitsAreCountedWhoeverMayDriveThere(t *testing.T) {
	t.Parallel()
	grid := "      n\n\n\n      c\n\nw   b   d   e\n\n      a\n\n\n      s"
	arms := []string{"wb highway=residential name=Ouest", "cn highway=residential name=Nord", "de highway=residential name=Est", "as highway=residential name=Sud"}
	for closed := range 1 << len(arms) {
		w := &town{grid: grid, ways: []string{"badcb highway=residential junction=roundabout"}}
		for i, arm := range arms {
			if closed>>i&1 == 1 {
				arm += []string{" access=private", " motor_vehicle=destination", " vehicle=delivery", " access=customers"}[i]
			}
			w.ways = append(w.ways, arm)
		}
		e := open(t, w.writeMap(t))
		for to, want := range map[byte]string{
			's': "At the roundabout, take the first exit onto Sud", 'e': "At the roundabout, take the second exit onto Est",
			'n': "At the roundabout, take the third exit onto Nord",
		} {
			if got := stepsBetween(t, e, w, route.Car, guidance.English, 'w', to); !slices.Equal(got, []string{want}) {
				t.Errorf("arms %04b closed: got %q, want %q", closed, got, want)
			}
		}
	}
}
