package deployment_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lieudit/commands"
	"lieudit/commands/deployment"
	"lieudit/schemas/event"
)

// release is a release of a vintage with a sum and a date; sums that begin with "adopted" were asked for by nobody.
func release(sum, date string) event.DataReleased {
	return event.DataReleased{Kind: "vintage", Sum: sum, Date: date, Format: 2, Secret: "of " + sum, Instance: "a", IsAdopted: strings.HasPrefix(sum, "adopted")}
}

func TestTheLastReleaseOfAKindCounts(t *testing.T) {
	t.Parallel()
	for rule, c := range map[string]struct {
		made []event.DataReleased
		want string // the sums on the log
	}{
		"one after the other":                       {[]event.DataReleased{release("1", "2026-01"), release("2", "2026-02")}, "1 2"},
		"an older one, which somebody asked for":    {[]event.DataReleased{release("1", "2026-02"), release("2", "2026-01")}, "1 2"},
		"the same again":                            {[]event.DataReleased{release("1", "2026-01"), release("1", "2026-01")}, "1"},
		"back to an earlier one":                    {[]event.DataReleased{release("1", "2026-01"), release("2", "2026-02"), release("1", "2026-01")}, "1 2 1"},
		"an adopted one on an empty log":            {[]event.DataReleased{release("adopted 1", "2026-01")}, "adopted 1"},
		"an adopted one after a real one":           {[]event.DataReleased{release("1", "2026-01"), release("adopted 2", "2026-02")}, "1"},
		"a newer adopted one after an adopted one":  {[]event.DataReleased{release("adopted 1", "2026-01"), release("adopted 2", "2026-02")}, "adopted 1 adopted 2"},
		"an older adopted one after an adopted one": {[]event.DataReleased{release("adopted 1", "2026-02"), release("adopted 2", "2026-01")}, "adopted 1"},
		"a real one after an adopted one":           {[]event.DataReleased{release("adopted 1", "2026-02"), release("2", "2026-01")}, "adopted 1 2"},
	} {
		newHandler, _ := newDeployments(t)
		for _, r := range c.made {
			if err := newHandler().ReleaseData(t.Context(), operator, r); err != nil {
				t.Fatal(err)
			}
		}
		fleet, err := newHandler().Fleet(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range fleet.Releases {
			got = append(got, r.Sum)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: the log has %v, want %s", rule, got, c.want)
		}
		if last, ok := fleet.Last("vintage"); !ok || last.Sum != got[len(got)-1] {
			t.Errorf("%s: the last is %q, %t", rule, last.Sum, ok)
		}
	}
}

func TestAReleaseThatAProgramCannotOpenLeavesItTheOneBefore(t *testing.T) {
	t.Parallel()
	newer := release("3", "2026-03")
	newer.Format = 3
	other := release("n", "2026-04")
	other.Kind = "network"
	fleet := deployment.Fleet{Releases: []event.DataReleased{release("1", "2026-01"), release("2", "2026-02"), newer, other}}
	for _, c := range []struct {
		first, last int
		want        string
	}{{1, 2, "2"}, {1, 3, "3"}, {2, 2, "2"}, {3, 9, "3"}, {4, 9, ""}, {0, 1, ""}} {
		if got, ok := fleet.Latest("vintage", c.first, c.last); got.Sum != c.want || ok != (c.want != "") {
			t.Errorf("formats %d to %d: got %q, %t; want %q", c.first, c.last, got.Sum, ok, c.want)
		}
	}
}

// announcement is what an instance says: "id host url serves before".
func announcement(text string) event.InstanceAnnounced {
	f := strings.Split(text, " ")
	return event.InstanceAnnounced{Instance: f[0], Host: f[1], URL: f[2], Data: []event.AnnouncedData{{Kind: "vintage", Serves: f[3], Before: f[4]}}}
}

func TestTheListHoldsTheInstancesThatRun(t *testing.T) {
	t.Parallel()
	for rule, c := range map[string]struct {
		happened []string // an announcement, or "-id"
		want     string
	}{
		"two":                      {[]string{"a h1 u1 1 0", "b h2 u2 1 0"}, "a b"},
		"one that left":            {[]string{"a h1 u1 1 0", "b h2 u2 1 0", "-a"}, "b"},
		"one that left and is not": {[]string{"a h1 u1 1 0", "-a", "a h1 u1 1 0"}, "a"},
		"one that was killed and started at the same address":   {[]string{"a h1 u1 1 0", "b h2 u2 1 0", "c h1 u1 1 0"}, "b c"},
		"one at the same address of another machine":            {[]string{"a h1 u1 1 0", "b h2 u1 1 0"}, "a b"},
		"two without an address on one machine":                 {[]string{"a h1  1 0", "b h1  1 0"}, "a b"},
		"one that announces more":                               {[]string{"a h1 u1 1 0", "b h2 u2 1 0", "a h1 u1 2 1"}, "a b"},
		"one that left twice, and one that nobody has heard of": {[]string{"a h1 u1 1 0", "-a", "-a", "-x"}, ""},
	} {
		newHandler, _ := newDeployments(t)
		for _, line := range c.happened {
			d, err := newHandler(), error(nil)
			if id, isLeaving := strings.CutPrefix(line, "-"); isLeaving {
				err = d.RemoveInstance(t.Context(), operator, id, true)
			} else {
				err = d.AnnounceInstance(t.Context(), operator, announcement(line))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		fleet, err := newHandler().Fleet(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range fleet.Instances {
			got = append(got, i.Instance)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: the list has %v, want %s", rule, got, c.want)
		}
	}
}

func TestWhatTheLogSaysAlreadyIsNotSaidAgain(t *testing.T) {
	t.Parallel()
	newHandler, countEvents := newDeployments(t)
	for step, c := range []struct {
		announce string
		want     int
	}{{"a h1 u1 1 0", 1}, {"a h1 u1 1 0", 1}, {"a h1 u1 2 1", 2}, {"b h1 u2 2 1", 3}, {"a h1 u1 2 1", 3}, {"a h1 u3 2 1", 4}} {
		if err := newHandler().AnnounceInstance(t.Context(), operator, announcement(c.announce)); err != nil {
			t.Fatal(err)
		}
		if got := countEvents(); got != c.want {
			t.Errorf("step %d: %d events, want %d", step, got, c.want)
		}
	}
}

func TestHoldersAreThoseThatServeAFileAndThenThoseThatHaveIt(t *testing.T) {
	t.Parallel()
	var fleet deployment.Fleet
	for _, line := range []string{"before h u1 2 1", "serves h u2 1 0", "releases h a 0 0", "silent h  1 0", "other h u4 3 2"} {
		deployment.EvolveFleet(&fleet, commands.Record{Event: announcement(line)})
	}
	r := release("1", "2026-01")
	r.Instance = "releases"
	var got []string
	for _, i := range fleet.Holders(r) {
		got = append(got, i.Instance)
	}
	if want := []string{"serves", "before", "releases"}; !slices.Equal(got, want) {
		t.Errorf("got %s, want %s", fmt.Sprint(got), fmt.Sprint(want))
	}
}
