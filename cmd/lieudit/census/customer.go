package census

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"lieudit/http/server"
	"lieudit/schemas/plan"
)

const quota = 1_000_000_000_000

// customer is an account with a key and one referential.
type customer struct {
	base, key string
	client    *http.Client
}

const referential = "shops"

// open opens an account, its key and its referential.
func (r *run) open(ctx context.Context, id string) (customer, error) {
	if err := r.office.Open(ctx, id, plan.Business, quota); err != nil {
		return customer{}, err
	}
	key, err := r.office.Key(ctx, id, "census")
	if err != nil {
		return customer{}, err
	}
	c := customer{"http://" + r.service.API + server.Base + "/locations", key.Token, http.DefaultClient}
	return c, c.do(ctx, http.MethodPost, "/referentiels", []byte(`{"code":"`+referential+`"}`), nil)
}

// do sends a request, which must succeed, and reads the answer into out, if there is one.
func (c customer) do(ctx context.Context, method, path string, body []byte, out any) error {
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

// synced is what a sync says it did.
type synced struct {
	Created   int `json:"crees"`
	Updated   int `json:"modifies"`
	Unchanged int `json:"inchanges"`
	Placed    int `json:"places"`
}

func (c customer) sync(ctx context.Context, s set) (did synced, err error) {
	text, err := json.Marshal(s)
	if err == nil {
		err = c.do(ctx, http.MethodPost, "/referentiels/"+referential+"/sites:sync", text, &did)
	}
	return did, err
}
