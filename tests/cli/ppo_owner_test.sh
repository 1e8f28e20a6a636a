#!/usr/bin/env bash
# Whose critic is it? A second run on the critic of another is refused, until it is told to take it over; a fork has a critic of its own, which goes on
# from the parent's save of that step. ppo_owner_test.sh KEDGE
set -uo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/commands_support.sh"
. "$here/train_support.sh"
. "$here/online_support.sh"
. "$here/ppo_support.sh"
ppo+=(trainer.ppo.max_epochs=2)
inside+=(trainer.ppo.max_epochs=2)
id_of() { python3 -c 'import json, sys; ids = {start["id"] for start in json.load(open(sys.argv[1] + "/run.json"))}; assert len(ids) == 1, ids; print(*ids)' "$1"; }

start_critic whole_critic
expect 0 'done: step 10 of 10' on whole
end_server
start_critic parent_critic
parent=$server parent_port=$port
expect 0 'done: step 6 of 6' on parent trainer.ppo.max_steps=6
id=$(id_of parent)

# Another run, new or forked, leaves the parent's critic alone.
expect 1 "HTTP 409: this critic, in .*parent_critic, belongs to run $id, but the call comes from run other-[0-9a-f]+\\. .*remote_critic_rm.critic.take_over=true" on other
expect 1 "HTTP 409: this critic, in .*, belongs to run $id" on child --fork "$(last_of parent)"
# With a critic that begins with the parent's saves, it goes on as the parent would have.
start_critic child_critic exp_manager.resume_from_checkpoint=parent_critic
expect 0 'forked from .*at step 6' on child --fork "$(last_of parent)"
cmp whole/model/model.safetensors child/model/model.safetensors || fail 'a fork went another way than its parent would have'
[ "$(id_of child)" != "$id" ] || fail 'a fork has its parent id'
end_server
server=$parent port=$parent_port
expect 0 'resumed from parent/checkpoints/.*at step 6' on parent
same_online whole parent
same_critics whole_critic parent_critic
[ "$(id_of parent)" = "$id" ] || fail 'a resumed run has another id'
# Taken over, it is lost to the first run.
expect 0 'done: step 2 of 2' on other remote_critic_rm.critic.take_over=true trainer.ppo.max_steps=2
grep -q "the run other-[0-9a-f]* takes over the critic of the run $id" parent_critic.log || fail 'nobody was told of the critic that was taken over'
expect 1 "HTTP 409: this critic, in .*, belongs to run other-[0-9a-f]+, but the call comes from run $id" on parent trainer.ppo.max_epochs=3
end_server

# A critic in the process: the fork finds its parent's by itself.
expect 0 'done: step 10 of 10' "${inside[@]}" "${rule[@]}" exp_manager.explicit_log_dir=inside
expect 0 'done: step 6 of 6' "${inside[@]}" "${rule[@]}" exp_manager.explicit_log_dir=inside_parent trainer.ppo.max_steps=6
expect 0 'forked from .*at step 6' "${inside[@]}" "${rule[@]}" exp_manager.explicit_log_dir=inside_child --fork "$(last_of inside_parent)/"
cmp inside/model/model.safetensors inside_child/model/model.safetensors || fail 'a fork with a critic in the process went another way'
expect 2 'there is no critic in .*/parent/critic' "${inside[@]}" "${rule[@]}" exp_manager.explicit_log_dir=orphan --fork "$(last_of parent)"

exit $((failures > 0))
