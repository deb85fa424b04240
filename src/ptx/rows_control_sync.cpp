// SPDX-License-Identifier: Apache-2.0
// Control flow, barriers, fences, warp votes, mbarriers and the miscellaneous instructions: PTX
// ISA 9.7.12, 9.7.13 and 9.7.19.
#include "ptx/instruction_rows.h"

namespace jitgemm::ptx {
namespace {

using enum Opcode;

// clang-format off
constexpr FormRow kRows[] = {
    {kBra, "bra{.uni} target:label", "9.7.12.3"},
    {kBrxIdx, "brx.idx{.uni} index:u32, list:targets", "9.7.12.4"},
    {kCall, "call{.uni} ?(=ret), f:function, ?(args), ?proto:prototype", "9.7.12.5"},
    {kRet, "ret{.uni}", "9.7.12.6"},
    {kExit, "exit", "9.7.12.7"},
    {kBarSync, "bar~.aligned{.cta}.sync a:u32, ?b:u32", "9.7.13.1"},
    {kBarArrive, "bar~.aligned{.cta}.arrive a:u32, b:u32", "9.7.13.1"},
    {kBarRed, "bar~.aligned{.cta}.red.popc.u32 =d, a:u32, ?b:u32, c:pred", "9.7.13.1"},
    {kBarRed, "bar~.aligned{.cta}.red.<and|or>.pred =d, a:u32, ?b:u32, c:pred", "9.7.13.1"},
    {kBarSync, "barrier{.cta}.sync{.aligned} a:u32, ?b:u32", "9.7.13.1"},
    {kBarArrive, "barrier{.cta}.arrive{.aligned} a:u32, b:u32", "9.7.13.1"},
    {kBarRed, "barrier{.cta}.red.popc{.aligned}.u32 =d, a:u32, ?b:u32, c:pred", "9.7.13.1"},
    {kBarRed, "barrier{.cta}.red.<and|or>{.aligned}.pred =d, a:u32, ?b:u32, c:pred", "9.7.13.1"},
    {kBarWarpSync, "bar.warp.sync mask:b32", "9.7.13.2"},
    {kBarrierClusterArrive, "barrier.cluster.arrive{.<release|relaxed>}{.aligned}", "9.7.13.3"},
    {kBarrierClusterWait, "barrier.cluster.wait{.acquire}{.aligned}", "9.7.13.3"},
    {kMembar, "membar.<cta|gl|sys>", "9.7.13.4"},
    {kFence, "fence{.<sc|acq_rel|acquire|release>}.<@scope>", "9.7.13.4"},
    {kFence, "fence.acquire.sync_restrict::shared::cluster.cluster", "9.7.13.4"},
    {kFence, "fence.release.sync_restrict::shared::cta.cluster", "9.7.13.4"},
    {kFenceMbarrierInit, "fence.mbarrier_init.release.cluster", "9.7.13.4"},
    {kFenceProxy, "fence.proxy.<alias|async>", "9.7.13.4"},
    {kFenceProxy, "fence.proxy.async.<global|shared::cta|shared::cluster>", "9.7.13.4"},
    {kFenceProxy, "fence.proxy.tensormap::generic.release.<@scope>", "9.7.13.4"},
    {kFenceProxy, "fence.proxy.tensormap::generic.acquire.<@scope> [addr], #size:any", "9.7.13.4"},
    {kFenceProxy, "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster", "9.7.13.4"},
    {kFenceProxy, "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster", "9.7.13.4"},
    {kFenceProxy, "membar.proxy.<alias|async>", "9.7.13.4"},
    {kVote, "vote.sync.<all|any|uni>.pred =d, a:pred, mask:b32", "9.7.13.9"},
    {kVote, "vote.sync.ballot.b32 =d, a:pred, mask:b32", "9.7.13.9"},
    {kMatch, "match.any.sync.<b32|b64> =d:b32, a, mask:b32", "9.7.13.10"},
    {kMatch, "match.all.sync.<b32|b64> =d:b32|?=p:pred, a, mask:b32", "9.7.13.10"},
    {kActivemask, "activemask.b32 =d", "9.7.13.11"},
    {kRedux, "redux.sync.<add|min|max>.<u32|s32> =d, a, mask:b32", "9.7.13.12"},
    {kRedux, "redux.sync.<and|or|xor>.b32 =d, a, mask:b32", "9.7.13.12"},
    {kRedux, "redux.sync.<min|max>{.abs}{.NaN}.f32 =d, a, mask:b32", "9.7.13.12"},
    {kGriddepcontrol, "griddepcontrol.<launch_dependents|wait>", "9.7.13.13"},
    {kElect, "elect.sync =d:b32|=p:pred, mask:b32", "9.7.13.14"},
    {kMbarrierInit, "mbarrier.init{.<shared|shared::cta>}.b64 [addr], count:u32", "9.7.13.15.9"},
    {kMbarrierInval, "mbarrier.inval{.<shared|shared::cta>}.b64 [addr]", "9.7.13.15.10"},
    {kMbarrierExpectTx, "mbarrier.expect_tx{.relaxed}{.<cta|cluster>}{.<shared|shared::cta|shared::cluster>}.b64 [addr], tx:u32", "9.7.13.15.11"},
    {kMbarrierCompleteTx, "mbarrier.complete_tx{.relaxed}{.<cta|cluster>}{.<shared|shared::cta|shared::cluster>}.b64 [addr], tx:u32", "9.7.13.15.12"},
    {kMbarrierArrive, "mbarrier.arrive{.<release|relaxed>}{.<cta|cluster>}{.<shared|shared::cta|shared::cluster>}.b64 =state, [addr], ?count:u32", "9.7.13.15.13"},
    {kMbarrierArrive, "mbarrier.arrive.expect_tx{.<release|relaxed>}{.<cta|cluster>}{.<shared|shared::cta|shared::cluster>}.b64 =state, [addr], tx:u32", "9.7.13.15.13"},
    {kMbarrierArrive, "mbarrier.arrive.noComplete{.release}{.cta}{.<shared|shared::cta>}.b64 =state, [addr], count:u32", "9.7.13.15.13"},
    {kMbarrierArriveDrop, "mbarrier.arrive_drop{.<release|relaxed>}{.<cta|cluster>}{.<shared|shared::cta|shared::cluster>}.b64 =state, [addr], ?count:u32", "9.7.13.15.14"},
    {kMbarrierArriveDrop, "mbarrier.arrive_drop.expect_tx{.<release|relaxed>}{.<cta|cluster>}{.<shared|shared::cta|shared::cluster>}.b64 =state, [addr], tx:u32", "9.7.13.15.14"},
    {kMbarrierArriveDrop, "mbarrier.arrive_drop.noComplete{.release}{.cta}{.<shared|shared::cta>}.b64 =state, [addr], count:u32", "9.7.13.15.14"},
    {kCpAsyncMbarrierArrive, "cp.async.mbarrier.arrive{.noinc}{.<shared|shared::cta>}.b64 [addr]", "9.7.13.15.15"},
    {kMbarrierTestWait, "mbarrier.test_wait{.<acquire|relaxed>}{.<cta|cluster>}{.<shared|shared::cta>}.b64 =p:pred, [addr], state", "9.7.13.15.16"},
    {kMbarrierTestWait, "mbarrier.test_wait.parity{.<acquire|relaxed>}{.<cta|cluster>}{.<shared|shared::cta>}.b64 =p:pred, [addr], parity:u32", "9.7.13.15.16"},
    {kMbarrierTryWait, "mbarrier.try_wait{.<acquire|relaxed>}{.<cta|cluster>}{.<shared|shared::cta>}.b64 =p:pred, [addr], state, ?hint:u32", "9.7.13.15.16"},
    {kMbarrierTryWait, "mbarrier.try_wait.parity{.<acquire|relaxed>}{.<cta|cluster>}{.<shared|shared::cta>}.b64 =p:pred, [addr], parity:u32, ?hint:u32", "9.7.13.15.16"},
    {kMbarrierPendingCount, "mbarrier.pending_count.b64 =count:u32, state", "9.7.13.15.17"},
    {kClusterlaunchcontrolTryCancel, "clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes{.multicast::cluster::all}.b128 [addr], [mbar]", "9.7.13.17"},
    {kClusterlaunchcontrolQueryCancel, "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 =p, handle:1", "9.7.13.18"},
    {kClusterlaunchcontrolQueryCancel, "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {=d}*4, handle:1", "9.7.13.18"},
    {kClusterlaunchcontrolQueryCancel, "clusterlaunchcontrol.query_cancel.<get_first_ctaid::x|get_first_ctaid::y|get_first_ctaid::z>.b32.b128 =d, handle:1", "9.7.13.18"},
    {kBrkpt, "brkpt", "9.7.19.1"},
    {kNanosleep, "nanosleep.u32 t", "9.7.19.2"},
    {kPmevent, "pmevent{.mask} #a:any", "9.7.19.3"},
    {kTrap, "trap", "9.7.19.4"},
    {kSetmaxnreg, "setmaxnreg.<inc|dec>.sync.aligned.u32 #count", "9.7.19.5"},
};
// clang-format on

}  // namespace

std::span<const FormRow> control_and_sync_rows() {
  return kRows;
}

}  // namespace jitgemm::ptx
