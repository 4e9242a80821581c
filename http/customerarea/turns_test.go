package customerarea

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/http/budget"
	"lieudit/schemas/grant"
)

func TestLongListsWaitForTheirTurnByAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &handler{Env: Env{Lists: budget.New(2, 1)}}
		read := func(context.Context) ([]string, bool, error) {
			time.Sleep(time.Second)
			return []string{"an entry"}, false, nil
		}
		ask := func(p grant.TokenGrant) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
			defer cancel()
			began := time.Now()
			_, _, err := takeTurns(h, p, read)(ctx)
			return time.Since(began), err
		}
		const many = 40
		overloaded := make(chan error, many)
		for range many {
			go func() {
				_, err := ask(grant.TokenGrant{Account: "attacker", TokenID: "1"})
				overloaded <- err
			}()
		}
		synctest.Wait()
		for _, p := range []grant.TokenGrant{{Account: "honest", TokenID: "2"}, {TokenID: "3"}} {
			if took, err := ask(p); err != nil || took != time.Second {
				t.Errorf("%+v: a list took %v (%v), want a second", p, took, err)
			}
		}
		refused := 0
		for range many {
			if err := <-overloaded; errors.Is(err, budget.ErrOverloaded) {
				refused++
			} else if err != nil {
				t.Errorf("got %v, want an overload", err)
			}
		}
		if want := many - int(commandTimeout/time.Second); refused < want-1 || refused > want {
			t.Errorf("%d of %d lists of one account had no turn within %v, want about %d", refused, many, commandTimeout, want)
		}
	})
}
