package customers

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestHalfOfTheClientsSendAFailedRequestOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		f := &fakeService{counted: map[string]int64{}, broken: func(_ int, path, _ string) (int, string) {
			if !strings.HasSuffix(path, ":close") {
				return 0, ""
			}
			sent++
			return 503, "{}"
		}}
		c := New(f, 3, nil)
		if !c.openFirst(t.Context(), 2, actDetails{Account: "compte-03", Label: "n"}) {
			t.Fatal("the account is not open")
		}
		const acts = 100
		random, bySends := rand.New(rand.NewPCG(1, 0)), map[int]int{}
		for range acts {
			sent = 0
			d := c.drawDetails(Act{Account: 2, Seed: random.Uint64()}, kind{})
			d.Pick = 1
			c.closeAccount(t.Context(), d)
			bySends[sent]++
		}
		if once, again := bySends[1], bySends[tries]; once+again != acts || once < acts/3 || again < acts/3 {
			t.Errorf("of %d acts, by how often they were sent: %v; want about half once and half %d times", acts, bySends, tries)
		}
	})
}

func TestAClusterIsAroundItsInstant(t *testing.T) {
	t.Parallel()
	at, accounts := 15*time.Second, []int{3, 11}
	acts := GenerateCluster(rand.New(rand.NewPCG(1, 0)), accounts, 3, at)
	if len(acts) != clusterActs {
		t.Errorf("%d acts, want %d", len(acts), clusterActs)
	}
	known := kinds()
	for _, a := range acts {
		isKnown := slices.ContainsFunc(known, func(k kind) bool { return k.name == a.Kind })
		if !slices.Contains(accounts, a.Account) || a.At < at-clusterTime || a.At > at+clusterTime || !isKnown {
			t.Errorf("%+v is not in the cluster", a)
		}
	}
}

func TestSubClientsHaveThePeriodOfTheirAgency(t *testing.T) {
	t.Parallel()
	for account, want := range map[int]int{0: 0, 1: 9, 2: 2, 3: 0, 4: 4, 7: 9, 11: 0} {
		if got := PeriodAge(account); got != want {
			t.Errorf("account %d: %d days, want %d", account, got, want)
		}
	}
}
