package locations

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"lieudit/http/api"
	"lieudit/schemas/plan"
)

const quota = 1_000_000_000_000

// account is an account with a key and one referential.
type account struct {
	base, key string
	client    *http.Client
}

const referential = "shops"

// openAccount opens an account, its key and its referential.
func (r *run) openAccount(ctx context.Context, id string) (account, error) {
	if err := r.admin.OpenAccount(ctx, id, plan.Business, quota); err != nil {
		return account{}, err
	}
	key, err := r.admin.IssueKey(ctx, id, "census")
	if err != nil {
		return account{}, err
	}
	c := account{"http://" + r.service.API + api.Base + "/locations", key.Token, http.DefaultClient}
	return c, c.send(ctx, http.MethodPost, "/referentiels", []byte(`{"code":"`+referential+`"}`), nil)
}

// send sends a request, which must succeed, and reads the answer into out, if there is one.
func (c account) send(ctx context.Context, method, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %.500s", method, path, resp.Status, text)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	return err
}

// syncResult is what a sync says it did.
type syncResult struct {
	Created   int `json:"crees"`
	Updated   int `json:"modifies"`
	Unchanged int `json:"inchanges"`
	Placed    int `json:"places"`
}

func (c account) syncSites(ctx context.Context, s syncRequest) (result syncResult, err error) {
	text, err := json.Marshal(s)
	if err == nil {
		err = c.send(ctx, http.MethodPost, "/referentiels/"+referential+"/sites:sync", text, &result)
	}
	return result, err
}
