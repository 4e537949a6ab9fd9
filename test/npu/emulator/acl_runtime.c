/* Stands in for libascendcl: the part of the ACL runtime that torch_npu calls, in host memory.
 *
 * Memory is malloc, copies are memcpy, streams and events are numbers. Everything is done at once,
 * so waiting means counting: hostnpu_waits() says how often somebody waited for the device.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define REFUSED_CODE 500000
#define SUCCEEDS(name) int name() { return 0; }
#define REFUSED(name) int name() { return REFUSED_CODE; }
#define WAITS(name) int name() { waits++; return 0; }

static long waits = 0;
static long next_handle = 0x1000;

long hostnpu_waits(void) { return waits; }

/* Waiting for the device. */
WAITS(aclrtSynchronizeStream)
WAITS(aclrtSynchronizeStreamWithTimeout)
WAITS(aclrtSynchronizeDevice)
WAITS(aclrtSynchronizeDeviceWithTimeout)
WAITS(aclrtSynchronizeEvent)

/* One device, a 910B3 with 64 GiB. */
const char *aclrtGetSocName(void) { return "Ascend910B3"; }
const char *aclGetRecentErrMsg(void) { return "emulated ACL: there is no CANN here"; }
int aclrtGetDevice(int *device) { *device = 0; return 0; }
int aclrtGetDeviceCount(uint32_t *count) { *count = 1; return 0; }
int aclrtGetCurrentContext(void **context) { *context = (void *)1; return 0; }
int aclrtGetMemInfo(int kind, size_t *available, size_t *total) {
    *available = *total = 64ul << 30;
    return 0;
}
int aclrtDeviceCanAccessPeer(int *can) { *can = 0; return 0; }
int aclrtGetDeviceInfo(uint32_t device, int attribute, int64_t *value) { *value = 24; return 0; }
int aclrtGetPrimaryCtxState(int device, uint32_t *flags, int *active) {
    if (flags) *flags = 0;
    *active = 1;
    return 0;
}
int aclsysGetVersionStr(char *package, char *version) { strcpy(version, "8.5.0"); return 0; }
int aclrtGetSysParamOpt(int option, int64_t *value) { *value = 0; return 0; }
int aclrtCtxGetSysParamOpt(int option, int64_t *value) { *value = 0; return 0; }

/* Memory. */
int aclrtMalloc(void **address, size_t bytes) {
    return posix_memalign(address, 512, bytes ? bytes : 512) ? REFUSED_CODE : 0;
}
int aclrtMallocAlign32(void **address, size_t bytes) { return aclrtMalloc(address, bytes); }
int aclrtMallocHost(void **address, size_t bytes) { return aclrtMalloc(address, bytes); }
int aclrtFree(void *address) { free(address); return 0; }
int aclrtFreeHost(void *address) { free(address); return 0; }
int aclrtMemcpy(void *to, size_t room, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
    return 0;
}
int aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
    return 0;
}
int aclrtMemset(void *to, size_t room, int value, size_t bytes) {
    memset(to, value, bytes);
    return 0;
}
int aclrtMemsetAsync(void *to, size_t room, int value, size_t bytes) {
    memset(to, value, bytes);
    return 0;
}

/* Streams and events: done as soon as asked for. */
static int new_handle(void **handle) { *handle = (void *)(next_handle++); return 0; }
int aclrtCreateStream(void **stream) { return new_handle(stream); }
int aclrtCreateStreamWithConfig(void **stream) { return new_handle(stream); }
int aclrtCreateEventExWithFlag(void **event) { return new_handle(event); }
int aclrtCreateEventWithFlag(void **event) { return new_handle(event); }
int aclrtStreamGetId(void *stream, int *id) { *id = (int)(long)stream; return 0; }
int aclrtStreamQuery(void *stream, int *status) { *status = 0; return 0; }
int aclrtQueryEventStatus(void *event, int *status) { *status = 1; return 0; }
int aclrtQueryEventWaitStatus(void *event, int *status) { *status = 0; return 0; }
int aclrtEventElapsedTime(float *milliseconds) { *milliseconds = 0.0f; return 0; }
SUCCEEDS(aclrtDestroyStream)
SUCCEEDS(aclrtDestroyEvent)
SUCCEEDS(aclrtStreamWaitEvent)
SUCCEEDS(aclrtRecordEvent)
SUCCEEDS(aclrtResetEvent)

/* Nothing is ever recorded: there is no aclmdlRICaptureBegin. */
int aclmdlRICaptureGetInfo(void *stream, int *status, void **model) {
    *status = 0;
    if (model) *model = 0;
    return 0;
}

/* Descriptors of the older kernel interface, which nothing is computed with. */
void *aclCreateDataBuffer() { return 0; }
void *aclCreateTensorDesc() { return 0; }
void *aclopCreateAttr() { return 0; }
unsigned long aclGetTensorDescNumDims() { return 0; }
unsigned long MsprofSysCycleTime(void) { return 0; }
unsigned long MsprofGetHashId() { return 0; }
void aclopDestroyAttr() {}
void aclDestroyTensorDesc() {}
void aclSetTensorDescName() {}
void aclAppLog() {}
SUCCEEDS(aclDestroyDataBuffer)

SUCCEEDS(aclInit)
SUCCEEDS(aclFinalize)
SUCCEEDS(aclrtSetDevice)
SUCCEEDS(aclrtResetDevice)
SUCCEEDS(aclrtSetCurrentContext)
SUCCEEDS(aclmdlInitDump)
SUCCEEDS(aclmdlSetDump)
SUCCEEDS(aclmdlFinalizeDump)
SUCCEEDS(aclrtProcessReport)
SUCCEEDS(aclrtSetDeviceSatMode)
SUCCEEDS(aclrtSetOpExecuteTimeOut)
SUCCEEDS(aclrtSetOpWaitTimeout)
SUCCEEDS(aclrtSetStreamFailureMode)
SUCCEEDS(aclrtPeekAtLastError)
SUCCEEDS(aclrtGetLastError)
SUCCEEDS(aclrtSetSysParamOpt)
SUCCEEDS(aclrtCtxSetSysParamOpt)
SUCCEEDS(MsprofRegisterCallback)

/* What needs a compiler of kernels, other devices or virtual memory. */
REFUSED(MsprofReportAdditionalInfo)
REFUSED(MsprofReportApi)
REFUSED(MsprofReportCompactInfo)
REFUSED(aclGetDeviceCapability)
REFUSED(aclGetTensorDescDimV2)
REFUSED(aclGetTensorDescFormat)
REFUSED(aclGetTensorDescType)
REFUSED(aclSetTensorFormat)
REFUSED(aclSetTensorPlaceMent)
REFUSED(aclSetTensorShape)
REFUSED(aclopCompileAndExecute)
REFUSED(aclopSetAttrBool)
REFUSED(aclopSetAttrDataType)
REFUSED(aclopSetAttrFloat)
REFUSED(aclopSetAttrInt)
REFUSED(aclopSetAttrListBool)
REFUSED(aclopSetAttrListFloat)
REFUSED(aclopSetAttrListInt)
REFUSED(aclopSetAttrListListInt)
REFUSED(aclopSetAttrString)
REFUSED(aclrtBinaryGetFunction)
REFUSED(aclrtBinaryLoadFromData)
REFUSED(aclrtDeviceEnablePeerAccess)
REFUSED(aclrtDeviceGetBareTgid)
REFUSED(aclrtFreePhysical)
REFUSED(aclrtGetFunctionAddr)
REFUSED(aclrtMallocPhysical)
REFUSED(aclrtMapMem)
REFUSED(aclrtMemExportToShareableHandle)
REFUSED(aclrtMemImportFromShareableHandle)
REFUSED(aclrtMemSetPidToShareableHandle)
REFUSED(aclrtReleaseMemAddress)
REFUSED(aclrtReserveMemAddress)
REFUSED(aclrtUnmapMem)
REFUSED(rtDevBinaryRegister)
REFUSED(rtFunctionRegister)
REFUSED(rtGetC2cCtrlAddr)
REFUSED(rtKernelLaunch)
